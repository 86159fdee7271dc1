//! The generated code in `src/generated` is what the `.proto` files say.
//!
//! It is kept in the repository so that a build needs no protobuf compiler. After a change to a
//! `.proto` file: `UPDATE_GENERATED=1 cargo test -p api --test generated`.

use prost::Message;
use std::path::Path;
use std::{env, fs};

const PROTOS: [&str; 10] = [
    "auth.proto",
    "etcdserver.proto",
    "health.proto",
    "kv.proto",
    "lease.proto",
    "membership.proto",
    "raft_internal.proto",
    "rpc.proto",
    "v3election.proto",
    "v3lock.proto",
];

#[test]
fn generated_code_matches_the_proto_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(PROTOS, [root.join("proto")]).expect("the protos compile");
    let scratch = root.join("../../target/generated-api");
    fs::create_dir_all(&scratch).expect("a scratch folder");
    prost_build::Config::new()
        .bytes(["."])
        .btree_map(["."])
        .out_dir(&scratch)
        .compile_fds(descriptors.clone())
        .expect("code is generated");
    fs::write(scratch.join("descriptors.bin"), descriptors.encode_to_vec()).expect("written");

    let kept = root.join("src/generated");
    for entry in fs::read_dir(&scratch).expect("listed") {
        let name = entry.expect("an entry").file_name();
        let fresh = fs::read(scratch.join(&name)).expect("read");
        if env::var_os("UPDATE_GENERATED").is_some() {
            fs::write(kept.join(&name), &fresh).expect("updated");
        }
        let current = fs::read(kept.join(&name)).unwrap_or_default();
        assert!(current == fresh, "{name:?} is stale: UPDATE_GENERATED=1 cargo test -p api");
    }
}
