use crate::stage::same_on_both;

#[test]
fn put() {
    same_on_both(&[], |ctl| {
        ctl.run("put foo bar");
        ctl.run("put foo bar2 --prev-kv");
        ctl.run("put foo bar3 --prev-kv -w json");
        ctl.run("put foo bar4 --prev-kv -w fields");
        ctl.run("put new value --prev-kv");
        ctl.run("put empty ''");
        ctl.run_with("put from-stdin", "first line\nsecond line\n");
        ctl.run("put foo --ignore-value");
        ctl.run("put missing --ignore-value");
        ctl.run("put missing x --ignore-lease");
        ctl.run("put foo x --lease=1234");
        ctl.run("put foo x --lease=1234 --ignore-lease");
        ctl.run("put '' x");
        ctl.run("put");
        ctl.run("put foo x -w table");
        ctl.run("get '' --prefix -w json");
    });
}

#[test]
fn get() {
    same_on_both(&[], |ctl| {
        for (key, value) in [("a", "3"), ("b", "1"), ("c", "2"), ("c/1", "x"), ("d", "0")] {
            ctl.run(&format!("put {key} {value}"));
        }
        ctl.run("put b 1b");
        ctl.run("put b 1c");
        ctl.run("put d 0b");
        ctl.run("get a");
        ctl.run("get a -w json");
        ctl.run("get a -w fields");
        ctl.run("get a --hex");
        ctl.run("get missing");
        ctl.run("get missing -w json");
        ctl.run("get missing -w fields");
        ctl.run("get a c");
        ctl.run("get c --prefix");
        ctl.run("get c --from-key");
        ctl.run("get '' --prefix --keys-only");
        ctl.run("get '' --prefix --print-value-only");
        ctl.run("get '' --prefix --count-only -w fields");
        ctl.run("get '' --prefix --count-only");
        ctl.run("get '' --prefix --limit=2");
        ctl.run("get '' --prefix --limit=2 -w json");
        for target in ["CREATE", "KEY", "MODIFY", "VALUE", "VERSION"] {
            ctl.run(&format!("get '' --prefix --sort-by={target}"));
            ctl.run(&format!("get '' --prefix --sort-by={target} --order=DESCEND --limit=3"));
        }
        ctl.run("get '' --prefix --order=descend");
        ctl.run("get b --rev=3");
        ctl.run("get b --rev=3 -w json");
        ctl.run("get b --rev=7");
        ctl.run("get '' --prefix --min-mod-rev=6 --max-mod-rev=8");
        ctl.run("get '' --prefix --min-create-rev=3 --max-create-rev=4 -w json");
        ctl.run("get a --consistency=s");
        ctl.run("get a --consistency=x");
        ctl.run("get a --rev=100");
        ctl.run("get ''");
        ctl.run("get a --prefix --from-key");
        ctl.run("get a --order=sideways");
    });
}

#[test]
fn del_and_compaction() {
    same_on_both(&[], |ctl| {
        for key in ["a", "b", "c", "c/1", "c/2", "d", "e", "f"] {
            ctl.run(&format!("put {key} value-of-{key}"));
        }
        ctl.run("del a");
        ctl.run("del a");
        ctl.run("del a -w json");
        ctl.run("del b --prev-kv");
        ctl.run("del c --prefix --prev-kv -w json");
        ctl.run("del d --prev-kv -w fields");
        ctl.run("del e f --range");
        ctl.run("del e --from-key");
        ctl.run("del ''");
        ctl.run("get '' --prefix -w json");
        ctl.run("get '' --prefix --rev=9");
        ctl.run("compaction 9");
        ctl.run("compaction 9");
        ctl.run("compaction 100");
        ctl.run("compaction 10 --physical");
        ctl.run("compaction abc");
        ctl.run("get '' --prefix --rev=9");
        ctl.run("get '' --prefix --rev=10 -w json");
        ctl.run("endpoint hashkv");
        ctl.run("endpoint hashkv --rev=12 -w json");
    });
}

#[test]
fn txn() {
    same_on_both(&[], |ctl| {
        ctl.run("put k1 v1");
        ctl.run("put k2 v2");
        ctl.run("put k2 v2b");
        let ops = "put k1 \"x y\"\nget k2\ndel k3\n\nput k1 otherwise\nget k1\n\n";
        ctl.run_with("txn", &format!("mod(\"k1\") > \"0\"\n\n{ops}"));
        ctl.run_with("txn -i", &format!("mod(\"k1\") > \"0\"\n\n{ops}"));
        ctl.run_with("txn", &format!("value(\"k1\") = \"nothing\"\n\n{ops}"));
        for format in ["json", "fields"] {
            ctl.run_with(&format!("txn -w {format}"), &format!("ver(\"k2\") = \"2\"\n\n{ops}"));
        }
        for compare in [
            "create(\"k1\") = \"2\"",
            "c(\"k1\") != \"2\"",
            "ver(\"missing\") = \"0\"",
            "val(\"missing\") != \"a\"",
            "value(\"k2\") > \"a\"",
            "mod(\"k2\") < \"4\"",
        ] {
            let input = format!("{compare}\n\nget k2 --rev=3\n\nget k1 --prefix\n\n");
            ctl.run_with("txn", &input);
        }
        ctl.run_with("txn", "\n\n\n");
        ctl.run_with("txn", "\nput a 1 --prev-kv\nget '' --prefix --keys-only\n\n\n");
        ctl.run_with("txn", "\ndel k --prefix --prev-kv\n\n\n");
        ctl.run_with("txn", "\nput a 1\nput a 2\n\n\n");
        ctl.run_with("txn", "\nput a 1\nput missing --ignore-value 2\n\n\n");
        ctl.run_with("txn", "\nget a --rev=1000\nput b 1\n\n\n");
        ctl.run_with("txn", "garbage\n\n\n\n");
        let many: String = (0..129).map(|i| format!("put many{i} x\n")).collect();
        ctl.run_with("txn", &format!("\n{many}\n\n"));
        ctl.run("get '' --prefix -w json");
    });
}
