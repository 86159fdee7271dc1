use crate::stage::{Stage, same_on_both};

/// Gives the lease in a key such as `name/7a7c` a name.
fn name_owner(ctl: &mut Stage, key: &str, name: &str) {
    let owner = key.rsplit('/').next().expect("a split has a last part");
    ctl.name_id(u64::from_str_radix(owner, 16).expect("ids are hexadecimal"), name);
}

#[test]
fn a_lock_is_held_by_one_at_a_time() {
    same_on_both(&[], |ctl| {
        let first = ctl.start("lock door", "");
        let shown = first.next_line();
        name_owner(ctl, &shown, "FIRST");
        ctl.write(&shown);
        let second = ctl.start("lock door --ttl=20", "");
        // The second one stands in the queue once its key is there.
        let mut keys = Vec::new();
        while keys.len() < 2 {
            let output = ctl.output("get door/ --prefix --keys-only --sort-by=CREATE", "");
            let text = String::from_utf8(output.stdout).expect("keys are text here");
            keys = text.lines().filter(|l| !l.is_empty()).map(String::from).collect();
        }
        name_owner(ctl, &keys[1], "SECOND");
        keys.iter().for_each(|key| ctl.write(key));
        first.interrupt();
        ctl.see_end(first);
        ctl.see(&second, 2);
        second.interrupt();
        ctl.see_end(second);
        ctl.run("get door/ --prefix");
    });
}

#[test]
fn a_command_runs_while_the_lock_is_held() {
    same_on_both(&[], |ctl| {
        ctl.run("lock door -- sh -c 'echo revision $ETCD_LOCK_REV; exit 7'");
        ctl.run("lock door echo hello");
        ctl.run("lock");
        ctl.run("get door/ --prefix");
    });
}

#[test]
fn elections() {
    same_on_both(&[], |ctl| {
        let first = ctl.start("elect office first", "");
        let shown = first.next_line();
        name_owner(ctl, &shown, "FIRST");
        ctl.write(&shown);
        ctl.see(&first, 1);
        let observer = ctl.start("elect -l office", "");
        ctl.see(&observer, 2);
        let second = ctl.start("elect office second", "");
        let mut keys = Vec::new();
        while keys.len() < 2 {
            let output = ctl.output("get office/ --prefix --keys-only --sort-by=CREATE", "");
            let text = String::from_utf8(output.stdout).expect("keys are text here");
            keys = text.lines().filter(|l| !l.is_empty()).map(String::from).collect();
        }
        name_owner(ctl, &keys[1], "SECOND");
        first.interrupt();
        ctl.see_end(first);
        ctl.see(&second, 2);
        ctl.see(&observer, 2);
        observer.interrupt();
        ctl.see_end(observer);
        second.interrupt();
        ctl.see_end(second);
        ctl.run("elect office");
    });
}
