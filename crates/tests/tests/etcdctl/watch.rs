use crate::stage::same_on_both;

#[test]
fn watch_one_key() {
    same_on_both(&[], |ctl| {
        ctl.run("put k 1");
        // From the first revision, so that nothing depends on when the watch begins.
        let watch = ctl.start("watch k --rev=1 --prev-kv", "");
        ctl.see(&watch, 3);
        ctl.run("put k 2");
        ctl.see(&watch, 5);
        ctl.run("put other x");
        ctl.run("del k");
        ctl.see(&watch, 5);
        watch.interrupt();
        ctl.see_end(watch);
    });
}

#[test]
fn watch_formats() {
    same_on_both(&[], |ctl| {
        ctl.run("put k/1 1");
        ctl.run("put k/2 2");
        let json = ctl.start("watch k/ --prefix --rev=2 -w json", "");
        ctl.see(&json, 1);
        let fields = ctl.start("watch k/ k0 --rev=2 --prev-kv -w fields", "");
        ctl.see(&fields, 18);
        ctl.run_with("txn", "\nput k/1 3\ndel k/2\nput k/4 4\n\n\n");
        ctl.see(&json, 1);
        ctl.see(&fields, 4 + 13 + 13 + 7);
    });
}

#[test]
fn watch_runs_a_command_for_each_event() {
    same_on_both(&[], |ctl| {
        ctl.run("put k 'a b'");
        let show = "echo $ETCD_WATCH_REVISION $ETCD_WATCH_EVENT_TYPE $ETCD_WATCH_KEY \
                    $ETCD_WATCH_VALUE";
        let watch = ctl.start(&format!("watch k --rev=2 -- sh -c '{show}'"), "");
        ctl.see(&watch, 4);
        ctl.run("del k");
        ctl.see(&watch, 4);
    });
}

#[test]
fn watch_interactive() {
    same_on_both(&[], |ctl| {
        ctl.run("put a 1");
        ctl.run("put b/1 2");
        let mut watch = ctl.start("watch -i", "watch a --rev=2\n");
        ctl.see(&watch, 3);
        watch.tell("watch --prefix b/ --rev=2");
        ctl.see(&watch, 3);
        watch.tell("progress");
        ctl.see(&watch, 2);
        ctl.run("put b/2 3");
        ctl.see(&watch, 3);
        ctl.run("del a");
        ctl.see(&watch, 3);
        watch.tell("nonsense");
        watch.interrupt();
        ctl.see_end(watch);
    });
}

#[test]
fn watch_of_compacted_history_is_cancelled() {
    same_on_both(&[], |ctl| {
        for value in 1..=5 {
            ctl.run(&format!("put k {value}"));
        }
        ctl.run("compaction 4");
        ctl.run("watch k --rev=2");
        ctl.run("watch k --rev=2 -w json");
        ctl.run("watch b a");
        let watch = ctl.start("watch k --rev=4", "");
        ctl.see(&watch, 9);
    });
}
