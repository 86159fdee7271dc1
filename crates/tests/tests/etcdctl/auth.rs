use crate::stage::same_on_both;

#[test]
fn users_and_roles_while_auth_is_off() {
    same_on_both(&[], |ctl| {
        ctl.run("auth status");
        ctl.run("auth status -w json");
        ctl.run("user list");
        ctl.run("user add u1:secret");
        ctl.run("user add u1:secret");
        ctl.run("user add u2 --no-password");
        ctl.run_with("user add u3 --interactive=false", "secret\n");
        ctl.run("user add :secret");
        ctl.run("role add r1");
        ctl.run("role add r1");
        ctl.run("role add r2 -w json");
        ctl.run("role add ''");
        ctl.run("role grant-permission r1 read a b");
        ctl.run("role grant-permission r1 readwrite foo");
        ctl.run("role grant-permission r1 write pre --prefix");
        ctl.run("role grant-permission r1 read z --from-key");
        ctl.run("role grant-permission r1 write foo");
        ctl.run("role grant-permission r1 read b a");
        ctl.run("role grant-permission r9 read a");
        for format in ["simple", "json", "fields"] {
            ctl.run(&format!("role get r1 -w {format}"));
        }
        ctl.run("role revoke-permission r1 a b");
        ctl.run("role revoke-permission r1 a b");
        ctl.run("role revoke-permission r1 pre --prefix");
        ctl.run("role get r1");
        ctl.run("user grant-role u1 r1");
        ctl.run("user grant-role u1 r1");
        ctl.run("user grant-role u1 r2");
        ctl.run("user grant-role u9 r1");
        ctl.run("user grant-role u1 r9");
        ctl.run("user get u1");
        ctl.run("user get u1 -w json");
        ctl.run("user get u1 --detail");
        ctl.run("user get u9");
        ctl.run("user revoke-role u1 r2");
        ctl.run("user revoke-role u1 r2");
        ctl.run_with("user passwd u1 --interactive=false", "other\n");
        ctl.run_with("user passwd u9 --interactive=false", "other\n");
        ctl.run("user list");
        ctl.run("user list -w json");
        ctl.run("role list");
        ctl.run("role list -w json");
        ctl.run("user delete u2");
        ctl.run("user delete u2");
        ctl.run("role delete r1");
        ctl.run("role delete r1");
        ctl.run("user get u1");
        ctl.run("auth status");
        ctl.run("auth disable");
        ctl.run("auth enable");
        ctl.run("--user=u1:other get a");
    });
}
