//! The data directory before anything in it is opened: what lies there, and may we write?

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::entry;
use crate::log::{Entry, Level, output_reason};
use crate::quote::quote;

/// What a data directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirType {
    Empty,
    Member,
}

/// Lines that end the process, and its exit code.
#[derive(Debug)]
pub struct Unusable {
    pub line: Entry,
    pub code: i32,
}

/// Looks at the directory without changing it. Remarks about strange names go to `lines`.
pub fn identify(dir: &Path, lines: &mut Vec<Entry>) -> Result<DirType, Unusable> {
    let mut names = match list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirType::Empty),
        Err(error) => {
            let why = format!("open {}: {}", dir.display(), output_reason(&error));
            let msg = "failed to list data directory";
            let line = entry!(Level::Fatal, msg, "dir" => dir, "error" => why);
            return Err(Unusable { line, code: 1 });
        }
    };
    names.sort();
    let mut is_there = |wanted: &str| {
        let found = names.iter().position(|name| name == wanted);
        found.map(|at| names.remove(at)).is_some()
    };
    let (is_member, is_proxy) = (is_there("member"), is_there("proxy"));
    for name in names {
        let msg = "found invalid file under data directory";
        lines.push(entry!(Level::Warn, msg, "filename" => name, "data-dir" => dir));
    }
    match (is_member, is_proxy) {
        (true, true) => {
            let msg = "invalid datadir; both member and proxy directories exist";
            Err(Unusable { line: entry!(Level::Fatal, msg), code: 1 })
        }
        (true, false) => Ok(DirType::Member),
        (false, true) => {
            let msg = "v2 http proxy has already been deprecated in 3.6";
            let line = entry!(Level::Panic, msg, "dir-type" => "proxy");
            Err(Unusable { line, code: 2 })
        }
        (false, false) => Ok(DirType::Empty),
    }
}

/// Creates the directory and its `member`, for the owner alone, and tries to write there. The error
/// is the text of `discovery failed`.
pub fn prepare(dir: &Path, lines: &mut Vec<Entry>) -> Result<(), String> {
    touch(dir, lines).map_err(|why| format!("cannot access data directory: {why}"))?;
    touch(&dir.join("member"), lines)
        .map_err(|why| format!("cannot access member directory: {why}"))
}

impl DirType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Member => "member",
        }
    }
}

fn list(dir: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn touch(dir: &Path, lines: &mut Vec<Entry>) -> Result<(), String> {
    match fs::metadata(dir) {
        Ok(found) => {
            let mode = found.permissions().mode() & 0o777;
            if mode != 0o700 {
                let kind = if found.is_dir() { 'd' } else { '-' };
                let why = format!(
                    "directory {} exist, but the permission is \"{kind}{}\". The recommended \
                     permission is \"-rwx------\" to prevent possible unprivileged access to the data",
                    quote(&dir.display().to_string()),
                    letters(mode)
                );
                lines.push(entry!(Level::Warn, "check file permission", "error" => why));
            }
        }
        Err(_) => {
            let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
            created
                .map_err(|error| format!("mkdir {}: {}", dir.display(), output_reason(&error)))?;
        }
    }
    try_to_write(&dir.join(".touch"))
}

fn try_to_write(path: &PathBuf) -> Result<(), String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let opened =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    opened.map_err(|error| format!("open {}: {}", path.display(), output_reason(&error)))?;
    fs::remove_file(&path)
        .map_err(|error| format!("remove {}: {}", path.display(), output_reason(&error)))
}

/// `rwxr-xr-x`.
fn letters(mode: u32) -> String {
    let bits = (0..9).rev().map(|bit| mode >> bit & 1 == 1);
    bits.zip("rwxrwxrwx".chars()).map(|(is_on, letter)| if is_on { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(lines: &[Entry]) -> Vec<&str> {
        lines.iter().map(|line| &*line.msg).collect()
    }

    #[test]
    fn a_directory_is_told_by_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = Vec::new();
        let at = dir.path().join("d");
        assert_eq!(identify(&at, &mut lines).unwrap(), DirType::Empty);
        fs::create_dir_all(at.join("lost+found")).unwrap();
        assert_eq!(identify(&at, &mut lines).unwrap(), DirType::Empty);
        assert_eq!(messages(&lines), ["found invalid file under data directory"]);
        fs::create_dir(at.join("proxy")).unwrap();
        assert_eq!(identify(&at, &mut lines).unwrap_err().code, 2);
        fs::create_dir(at.join("member")).unwrap();
        assert_eq!(identify(&at, &mut lines).unwrap_err().code, 1);
        fs::remove_dir(at.join("proxy")).unwrap();
        assert_eq!(identify(&at, &mut lines).unwrap(), DirType::Member);
    }

    #[test]
    fn a_file_in_its_place_cannot_be_listed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        fs::write(&path, b"").unwrap();
        let unusable = identify(&path, &mut Vec::new()).unwrap_err();
        assert_eq!((unusable.code, &*unusable.line.msg), (1, "failed to list data directory"));
    }

    #[test]
    fn a_new_directory_is_for_the_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let mut lines = Vec::new();
        prepare(&path, &mut lines).unwrap();
        assert!(lines.is_empty());
        for made in [&path, &path.join("member")] {
            assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        prepare(&path, &mut lines).unwrap();
        let [line] = &lines[..] else { panic!("one remark: {lines:?}") };
        assert_eq!(
            line.fields[0].1,
            crate::log::Value::Text(format!(
                "directory \"{}\" exist, but the permission is \"drwxr-xr-x\". The recommended \
                 permission is \"-rwx------\" to prevent possible unprivileged access to the data",
                path.display()
            ))
        );
    }

    #[test]
    fn a_path_through_a_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), b"").unwrap();
        let path = dir.path().join("f/d");
        let why = prepare(&path, &mut Vec::new()).unwrap_err();
        assert!(why.starts_with("cannot access data directory: mkdir "), "{why}");
        assert!(why.ends_with(": not a directory"), "{why}");
    }
}
