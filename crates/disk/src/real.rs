//! The operating system's files.

use crate::{Disk, File, Open};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// The real file system. With `fsync: false` (`--unsafe-no-fsync`) syncs do nothing.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk {
    pub fsync: bool,
}

impl Default for RealDisk {
    fn default() -> Self {
        RealDisk { fsync: true }
    }
}

struct RealFile {
    file: fs::File,
    fsync: bool,
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(0o600);
        match how {
            Open::Read => &mut options,
            Open::Write => options.write(true),
            Open::CreateNew => options.write(true).create_new(true),
            Open::Create => options.write(true).create(true).truncate(false),
        };
        Ok(Arc::new(RealFile { file: options.open(path)?, fsync: self.fsync }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // A name that is not UTF-8 is nobody's here.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.fsync { fs::File::open(dir)?.sync_all() } else { Ok(()) }
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        // SAFETY: the descriptor is open for as long as `self.file` lives.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), 0, len as libc::off_t) } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        if self.fsync { self.file.sync_data() } else { Ok(()) }
    }

    fn try_lock(&self) -> io::Result<bool> {
        // SAFETY: all zeros is a valid `flock`.
        let mut whole: libc::flock = unsafe { std::mem::zeroed() };
        whole.l_type = libc::F_WRLCK as libc::c_short;
        whole.l_whence = libc::SEEK_SET as libc::c_short;
        // SAFETY: the descriptor is open for as long as `self.file` lives, and `whole` outlives
        // the call.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &whole) } {
            0 => Ok(true),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
                error => Err(error),
            },
        }
    }
}
