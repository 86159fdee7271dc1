//! Where the programs are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The etcd that the differential tests are written against.
const ETCD_FOLDER: &str = "etcd-3.6.14";

/// Our own binary, built if need be, in the profile that the tests run in. `ALTHING_BIN` names
/// another one.
pub fn althing() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build_althing).clone()
}

/// `cargo test` builds no binary of another package, so this asks for it.
fn build_althing() -> PathBuf {
    if let Some(path) = std::env::var_os("ALTHING_BIN") {
        return path.into();
    }
    let profile_dir = profile_dir();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "althing"]).current_dir(workspace());
    build.arg("--target-dir").arg(profile_dir.parent().expect("profiles live in a target folder"));
    if profile_dir.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("cargo is there, it runs this test");
    assert!(status.success(), "althing does not build");
    profile_dir.join("althing")
}

/// A program of the reference etcd (`etcd`, `etcdctl`, `etcdutl`, `etcd-dump-logs`), if it is
/// installed: in `ALTHING_ETCD_DIR`, or where `scripts/install-etcd.sh` puts it.
pub fn etcd(program: &str) -> Option<PathBuf> {
    let dir = match std::env::var_os("ALTHING_ETCD_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => workspace().join("target").join(ETCD_FOLDER),
    };
    let path = dir.join(program);
    path.is_file().then_some(path)
}

/// The same, with a note for the reader of the test's output if it is missing. With
/// `ALTHING_REQUIRE_ETCD=1` that is a failure, so that CI cannot skip by accident.
pub fn etcd_or_skip(program: &str) -> Option<PathBuf> {
    let found = etcd(program);
    if found.is_none() {
        let required = std::env::var_os("ALTHING_REQUIRE_ETCD").is_some_and(|v| v == "1");
        assert!(!required, "{program} 3.6.14 is missing: run scripts/install-etcd.sh");
        eprintln!("skipped: {program} 3.6.14 is not installed (scripts/install-etcd.sh does it)");
    }
    found
}

fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).expect("this crate is in crates/ of the workspace")
}

/// Tests run from `target/<profile>/deps`.
fn profile_dir() -> PathBuf {
    let test = std::env::current_exe().expect("the system knows which program runs");
    test.ancestors().nth(2).expect("tests run from a folder of the profile").to_path_buf()
}
