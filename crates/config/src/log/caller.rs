//! Who spoke: `store/lease.rs:42`.

/// The file's directory and name. A crate's `src` says nothing, so the crate's own name stands
/// there instead: `crates/server/src/lib.rs` is `server/lib.rs`.
pub(super) fn short(file: &str) -> String {
    let mut parts = file.rsplit(['/', '\\']);
    let name = parts.next().unwrap_or(file);
    match parts.find(|part| *part != "src") {
        Some(dir) => format!("{dir}/{name}"),
        None => name.to_string(),
    }
}

/// The directory alone, which the journal keeps as the package.
pub(super) fn package(file: &str) -> String {
    let short = short(file);
    short.split_once('/').map_or(".", |(dir, _)| dir).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_a_directory_and_a_file() {
        assert_eq!(short("crates/server/src/lib.rs"), "server/lib.rs");
        assert_eq!(short("crates/config/src/log/mod.rs"), "log/mod.rs");
        assert_eq!(short("main.rs"), "main.rs");
        assert_eq!(package("crates/server/src/lib.rs"), "server");
    }
}
