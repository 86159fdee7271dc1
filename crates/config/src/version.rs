//! What this build calls itself.

/// The etcd release whose behaviour this server has; clients and scripts decide by it.
pub const ETCD_VERSION: &str = "3.6.14";

pub const ALTHING_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit this was built from, when the builder said so.
pub(crate) const GIT_SHA: &str = match option_env!("ALTHING_GIT_SHA") {
    Some(sha) => sha,
    None => "Not provided",
};

/// What stands where etcd names its Go toolchain: the compiler that built this.
pub fn go_version() -> &'static str {
    env!("ALTHING_RUST_VERSION")
}

/// The operating system by Go's name.
pub(crate) fn go_os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        os => os,
    }
}

/// The processor by Go's name, which is what scripts and images compare.
pub(crate) fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        arch => arch,
    }
}
