use crate::stage::{Stage, same_on_both};

#[test]
fn members() {
    same_on_both(&[], |ctl| {
        for format in ["simple", "json", "fields", "table"] {
            ctl.run_changed(&format!("member list -w {format}"), "", aligned);
        }
        ctl.run("member list -w json --hex");
        ctl.run("member list --consistency=s");
        let id = member(ctl);
        let peer = ctl.server.peer_port;
        ctl.name(&format!("localhost:{peer}"), "PEER-BY-NAME");
        ctl.run(&format!("member update {id} --peer-urls=http://127.0.0.1:{peer}"));
        ctl.run(&format!("member update {id} --peer-urls=http://localhost:{peer} -w json"));
        ctl.run("member list");
        ctl.run("member update 1234 --peer-urls=http://127.0.0.1:1");
        ctl.run("member remove 1234");
        ctl.run("member promote 1234");
        ctl.run(&format!("member promote {id}"));
        ctl.run("member add");
        ctl.run("member add x");
        ctl.run(&format!("member add x --peer-urls=http://localhost:{peer}"));
        ctl.run("member add x --peer-urls=nonsense");
        ctl.run(&format!("move-leader {id}"));
        ctl.run(&format!("move-leader {id} -w json"));
        ctl.run("move-leader 1234");
        ctl.run("move-leader");
    });
}

/// Names of ids are longer than the ids, and peer addresses have ports of any length.
fn aligned(shown: String) -> String {
    let mut words: Vec<&str> = shown.split(' ').filter(|word| !word.is_empty()).collect();
    words.retain(|word| !word.trim_matches(['-', '+']).is_empty());
    words.join(" ")
}

/// The id of the only member, as etcdctl wants it.
pub fn member(ctl: &Stage) -> String {
    let list = String::from_utf8(ctl.output("member list", "").stdout).expect("it prints text");
    list.split(',').next().expect("a split has a first part").to_string()
}
