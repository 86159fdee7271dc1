use crate::stage::same_on_both;
use testkit::Server;

#[test]
fn a_mirror_follows_its_source() {
    let destination = Server::start(&testkit::althing(), &[]);
    let to = destination.endpoint();
    same_on_both(&[], |ctl| {
        // Each source has a prefix of its own at the destination.
        let prefix = format!("from{}/", ctl.server.client_port);
        ctl.name(&prefix, "MIRROR/");
        ctl.name(&to, "DESTINATION");
        ctl.run("put a 1");
        ctl.run("put b 2");
        let mirror = ctl.start(&format!("make-mirror {to} --dest-prefix={prefix}"), "");
        let copied = |wanted: &str| {
            loop {
                let get = ["--endpoints", &to, "get", &prefix, "--prefix"];
                let etcdctl = testkit::etcd("etcdctl").expect("the scene runs with it");
                let output = std::process::Command::new(etcdctl).args(get).output();
                let output = output.expect("etcdctl can be run").stdout;
                let text = String::from_utf8(output).expect("keys and values are text here");
                if text.replace(&prefix, "") == wanted {
                    break;
                }
            }
        };
        copied("a\n1\nb\n2\n");
        ctl.run_with("txn", "\nput a 3\ndel b\nput c 4\n\n\n");
        copied("a\n3\nc\n4\n");
        mirror.interrupt();
    });
}
