//! Notes which compiler built this, for the line of `--version` where etcd names Go's.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let printed = Command::new(compiler).arg("--version").output();
    let text = printed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    // `rustc 1.95.0 (f2d3ce0bd 2026-03-21)`
    let number = text.split_whitespace().nth(1).unwrap_or("-unknown");
    println!("cargo::rustc-env=ALTHING_RUST_VERSION=rust{number}");
}
