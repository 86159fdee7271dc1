use crate::stage::{Stage, same_on_both};

/// Grants a lease and gives its id a name; returns the id as etcdctl wants it.
fn grant(ctl: &mut Stage, ttl: u32, name: &str) -> String {
    let output = ctl.output(&format!("lease grant {ttl}"), "");
    let line = String::from_utf8(output.stdout).expect("etcdctl prints text");
    let id = line.split(' ').nth(1).expect("it says which lease").to_string();
    ctl.name_id(u64::from_str_radix(&id, 16).expect("ids are hexadecimal"), name);
    ctl.write(&line);
    id
}

/// The seconds that are left, which a slow machine may let pass.
fn without_seconds(shown: String) -> String {
    let shown = match shown.split_once("remaining(") {
        Some((before, after)) => {
            let rest = after.split_once("s)").expect("seconds are followed by their unit").1;
            format!("{before}remaining(N s){rest}")
        }
        None => shown,
    };
    match shown.split_once("\"ttl\":") {
        Some((before, after)) if !after.starts_with('-') => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}\"ttl\":N{rest}")
        }
        _ => shown,
    }
}

#[test]
fn leases() {
    same_on_both(&[], |ctl| {
        ctl.run("lease list");
        let one = grant(ctl, 1000, "ONE");
        let two = grant(ctl, 2000, "TWO");
        ctl.run("lease list");
        ctl.run("lease list -w json");
        ctl.run("lease list -w fields");
        ctl.run(&format!("put k1 v --lease={one}"));
        ctl.run(&format!("put k2 v --lease={one}"));
        ctl.run(&format!("put k3 v --lease={two}"));
        ctl.run("get k --prefix -w json");
        ctl.run("get k1 -w fields --hex");
        ctl.run("put k1 w --ignore-lease");
        ctl.run("put k2 w");
        for format in ["simple", "json"] {
            for keys in ["", "--keys"] {
                let line = format!("lease timetolive {one} {keys} -w {format}");
                ctl.run_changed(&line, "", without_seconds);
            }
        }
        ctl.run(&format!("lease keep-alive --once {one}"));
        ctl.run(&format!("lease keep-alive --once {one} -w json"));
        ctl.run(&format!("lease keep-alive --once {one} -w fields"));
        ctl.run(&format!("lease revoke {one}"));
        ctl.run(&format!("lease revoke {one}"));
        ctl.run(&format!("lease revoke {two} -w json"));
        ctl.run(&format!("lease keep-alive --once {one}"));
        ctl.run(&format!("lease keep-alive {one}"));
        ctl.run(&format!("lease timetolive {one} --keys"));
        ctl.run(&format!("lease timetolive {one} -w json"));
        ctl.run("get k --prefix -w json");
        ctl.run("lease list -w json");
        ctl.run("lease grant 9000000001");
        ctl.run("lease grant abc");
        grant(ctl, 1, "SHORT");
        grant(ctl, 0, "ZERO");
    });
}

#[test]
fn a_lease_that_ends_takes_its_keys_along() {
    same_on_both(&[], |ctl| {
        let lease = grant(ctl, 2, "LEASE");
        ctl.run(&format!("put k/2 v --lease={lease}"));
        ctl.run(&format!("put k/1 v --lease={lease}"));
        let watch = ctl.start("watch k/ --prefix --rev=1 -w json", "");
        ctl.see(&watch, 2);
        ctl.run("get k/ --prefix --keys-only");
        ctl.run("lease list");
        ctl.run(&format!("lease timetolive {lease} --keys"));
    });
}

#[test]
fn keep_alive_goes_on_until_the_lease_is_gone() {
    same_on_both(&[], |ctl| {
        let lease = grant(ctl, 3, "LEASE");
        ctl.run(&format!("put k v --lease={lease}"));
        let keep = ctl.start(&format!("lease keep-alive {lease}"), "");
        ctl.see(&keep, 4);
        ctl.run("get k");
        ctl.run(&format!("lease revoke {lease}"));
        // How many more it prints is a matter of moments.
        keep.interrupt();
    });
}
