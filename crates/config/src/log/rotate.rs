//! A log file that is set aside when it is full: `etcd.log` becomes
//! `etcd-2026-11-15T07-05-14.146.log`, and old ones are compressed and, in time, removed.
//!
//! The rules are those of the library etcd uses: a file never grows past its limit, age is read
//! from the name and not from the file system, and a compressed file and its source count as one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use super::clock::{Calendar, Zone};

/// When a file is full and how long the old ones stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// 0 is 100.
    pub size_max_megabytes: u64,
    /// 0 keeps them whatever their age.
    pub age_max_days: u64,
    /// 0 keeps any number.
    pub backups_max: u64,
    /// Backups carry local time in their names, else UTC.
    pub local_time: bool,
    pub compress: bool,
}

pub(super) struct Rotator {
    path: PathBuf,
    rotation: Rotation,
    clock: fn() -> SystemTime,
    /// The live file and its size, once something was written.
    live: Option<(File, u64)>,
    /// Tidying compresses, which takes a while; one at a time, beside the writers.
    tidying: Arc<Mutex<()>>,
    tidier: Option<JoinHandle<()>>,
}

const MEGABYTE: u64 = 1 << 20;

impl Rotator {
    pub fn new(path: PathBuf, rotation: Rotation) -> Self {
        let tidying = Arc::default();
        Self { path, rotation, clock: SystemTime::now, live: None, tidying, tidier: None }
    }

    pub fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        let limit = self.size_max();
        if length > limit {
            return Err(io::Error::other(format!(
                "write length {length} exceeds maximum file size {limit}"
            )));
        }
        let mut live = match self.live.take() {
            Some(live) => live,
            None => self.open_or_rotate(length)?,
        };
        if live.1 + length > limit {
            drop(live);
            live = self.rotate()?;
        }
        live.0.write_all(line)?;
        live.1 += length;
        self.live = Some(live);
        Ok(())
    }

    fn size_max(&self) -> u64 {
        match self.rotation.size_max_megabytes {
            0 => 100 * MEGABYTE,
            megabytes => megabytes.saturating_mul(MEGABYTE),
        }
    }

    /// Goes on with the file of the last run while there is room in it.
    fn open_or_rotate(&mut self, length: u64) -> io::Result<(File, u64)> {
        self.tidy();
        match fs::metadata(&self.path) {
            Ok(found) if found.len() + length >= self.size_max() => self.rotate(),
            Ok(found) => {
                let file = OpenOptions::new().append(true).open(&self.path)?;
                Ok((file, found.len()))
            }
            Err(_) => self.create(),
        }
    }

    fn rotate(&mut self) -> io::Result<(File, u64)> {
        let created = self.create()?;
        self.tidy();
        Ok(created)
    }

    /// A fresh live file; what was there moves aside and hands its mode on.
    fn create(&mut self) -> io::Result<(File, u64)> {
        if let Some(dir) = self.path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
        }
        let mut mode = 0o600;
        if let Ok(found) = fs::metadata(&self.path) {
            mode = found.permissions().mode() & 0o7777;
            fs::rename(&self.path, self.backup_path())?;
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(mode);
        Ok((options.open(&self.path)?, 0))
    }

    fn backup_path(&self) -> PathBuf {
        let (stem, extension) = split_name(&self.path);
        let stamp = stamp((self.clock)(), self.rotation.local_time);
        self.path.with_file_name(format!("{stem}-{stamp}{extension}"))
    }

    fn tidy(&mut self) {
        let r = self.rotation;
        if r.backups_max == 0 && r.age_max_days == 0 && !r.compress {
            return;
        }
        let (path, now, tidying) = (self.path.clone(), (self.clock)(), self.tidying.clone());
        self.tidier = Some(std::thread::spawn(move || {
            let _one_at_a_time = tidying.lock().unwrap_or_else(PoisonError::into_inner);
            // A file that cannot be removed today is tried again at the next rotation.
            let _ = tidy(&path, r, now);
        }));
    }

    #[cfg(test)]
    fn settle(&mut self) {
        if let Some(tidier) = self.tidier.take() {
            tidier.join().expect("tidying does not panic");
        }
    }
}

/// One file set aside, by the time in its name.
struct Backup {
    name: String,
    stamp: String,
    is_compressed: bool,
}

fn tidy(path: &Path, rotation: Rotation, now: SystemTime) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut backups = backups(path, dir)?;
    let mut condemned = Vec::new();
    if rotation.backups_max > 0 {
        let mut kept: Vec<String> = Vec::new();
        backups.retain(|backup| {
            if !kept.contains(&backup.stamp) {
                kept.push(backup.stamp.clone());
            }
            let stays = kept.len() as u64 <= rotation.backups_max;
            if !stays {
                condemned.push(backup.name.clone());
            }
            stays
        });
    }
    if rotation.age_max_days > 0 {
        let age = Duration::from_secs(rotation.age_max_days.saturating_mul(24 * 3600));
        let cutoff = now.checked_sub(age).map(|time| stamp(time, rotation.local_time));
        backups.retain(|backup| {
            let stays = cutoff.as_ref().is_none_or(|cutoff| backup.stamp >= *cutoff);
            if !stays {
                condemned.push(backup.name.clone());
            }
            stays
        });
    }
    for name in condemned {
        fs::remove_file(dir.join(name))?;
    }
    if rotation.compress {
        for backup in backups.iter().filter(|backup| !backup.is_compressed) {
            compress(&dir.join(&backup.name))?;
        }
    }
    Ok(())
}

/// All backups of `path`, newest first. The stamps sort as the times do.
fn backups(path: &Path, dir: &Path) -> io::Result<Vec<Backup>> {
    let (stem, extension) = split_name(path);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz");
        let is_compressed = plain.is_some();
        let stamp = plain
            .unwrap_or(&name)
            .strip_prefix(&format!("{stem}-"))
            .and_then(|rest| rest.strip_suffix(extension.as_str()))
            .filter(|stamp| is_stamp(stamp));
        if let Some(stamp) = stamp {
            let stamp = stamp.to_string();
            found.push(Backup { name, stamp, is_compressed });
        }
    }
    found.sort_by(|one, other| other.stamp.cmp(&one.stamp));
    Ok(found)
}

fn stamp(time: SystemTime, is_local: bool) -> String {
    let c = Calendar::of(time, if is_local { Zone::Local } else { Zone::Utc });
    format!(
        "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}",
        c.year,
        c.month,
        c.day,
        c.hour,
        c.minute,
        c.second,
        c.micros / 1000
    )
}

fn is_stamp(text: &str) -> bool {
    let pattern = b"0000-00-00T00-00-00.000";
    text.len() == pattern.len()
        && text.bytes().zip(pattern).all(|(byte, &wanted)| match wanted {
            b'0' => byte.is_ascii_digit(),
            mark => byte == mark,
        })
}

fn split_name(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.rfind('.') {
        Some(dot) => (name[..dot].to_string(), name[dot..].to_string()),
        None => (name, String::new()),
    }
}

/// Writes `path.gz` in full before the source goes, so that a crash leaves one of them whole.
fn compress(path: &Path) -> io::Result<()> {
    let mut packed_name = path.as_os_str().to_owned();
    packed_name.push(".gz");
    let mut source = File::open(path)?;
    let mode = source.metadata()?.permissions().mode() & 0o7777;
    let mut options = OpenOptions::new();
    let packed = options.create(true).truncate(true).write(true).mode(mode).open(packed_name)?;
    let mut encoder = flate2::write::GzEncoder::new(packed, flate2::Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn rotation() -> Rotation {
        Rotation {
            size_max_megabytes: 1,
            age_max_days: 0,
            backups_max: 0,
            local_time: false,
            compress: false,
        }
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Every reading is a day later than the one before.
    fn a_day_each_time() -> SystemTime {
        static DAY: AtomicU64 = AtomicU64::new(20_000);
        let day = DAY.fetch_add(1, Ordering::Relaxed);
        SystemTime::UNIX_EPOCH + Duration::from_secs(day * 24 * 3600)
    }

    #[test]
    fn a_full_file_is_set_aside_with_its_time_and_mode() {
        let dir = tempfile::tempdir().unwrap();
        let mut rotator = Rotator::new(dir.path().join("sub/etcd.log"), rotation());
        rotator.clock = || SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let line = vec![b'x'; 600 * 1024];
        rotator.write(&line).unwrap();
        rotator.write(&line).unwrap();
        let dir = dir.path().join("sub");
        assert_eq!(names(&dir), ["etcd-2023-11-14T22-13-20.123.log", "etcd.log"]);
        for name in names(&dir) {
            let found = fs::metadata(dir.join(name)).unwrap();
            assert_eq!((found.len(), found.permissions().mode() & 0o777), (600 * 1024, 0o600));
        }
    }

    #[test]
    fn the_file_of_the_last_run_goes_on_while_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etcd.log");
        Rotator::new(path.clone(), rotation()).write(b"one\n").unwrap();
        Rotator::new(path.clone(), rotation()).write(b"two\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_line_longer_than_a_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut rotator = Rotator::new(dir.path().join("etcd.log"), rotation());
        assert!(rotator.write(&vec![b'x'; (MEGABYTE + 1) as usize]).is_err());
    }

    #[test]
    fn old_backups_are_compressed_and_only_so_many_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("etcd-notes.log"), b"not ours").unwrap();
        let limits = Rotation { backups_max: 2, compress: true, ..rotation() };
        let mut rotator = Rotator::new(dir.path().join("etcd.log"), limits);
        rotator.clock = a_day_each_time;
        for fill in b"abcd" {
            rotator.write(&vec![*fill; 900 * 1024]).unwrap();
            rotator.settle();
        }
        let found = names(dir.path());
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].ends_with(".log.gz") && found[1].ends_with(".log.gz"), "{found:?}");
        assert_eq!(found[2..], ["etcd-notes.log", "etcd.log"]);
        let packed = File::open(dir.path().join(&found[1])).unwrap();
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut text).unwrap();
        assert_eq!(text, vec![b'c'; 900 * 1024], "the newest backup is the third file");
    }

    #[test]
    fn a_backup_past_its_age_goes() {
        let dir = tempfile::tempdir().unwrap();
        for day in ["01", "20"] {
            fs::write(dir.path().join(format!("etcd-2023-11-{day}T00-00-00.000.log")), b"x")
                .unwrap();
        }
        let limits = Rotation { age_max_days: 7, ..rotation() };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_600_000); // 21 November
        tidy(&dir.path().join("etcd.log"), limits, now).unwrap();
        assert_eq!(names(dir.path()), ["etcd-2023-11-20T00-00-00.000.log"]);
    }
}
