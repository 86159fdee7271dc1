//! The places where lines go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use super::journal::Journal;
use super::rotate::Rotator;
use super::{Captured, Entry, LogConfig};
use crate::quote::quote;

pub(super) struct Outputs(Vec<Output>);

enum Output {
    Stderr,
    Stdout,
    File(File),
    Rotated(Rotator),
    Journal(Journal),
    Captured(Captured),
}

const JOURNAL: &str = "systemd/journal";

impl Outputs {
    pub fn open(config: &LogConfig) -> Result<Self, String> {
        let names = &config.outputs;
        if names.iter().any(|name| name == JOURNAL) {
            return Ok(Self(vec![Output::Journal(Journal::connect()?)]));
        }
        if names.iter().any(|name| name == "/dev/null") {
            return Ok(Self::nowhere());
        }
        let mut outputs = Vec::new();
        for name in names {
            outputs.push(match (name.as_str(), &config.rotation) {
                ("default" | "stderr", _) => Output::Stderr,
                ("stdout", _) => Output::Stdout,
                (path, Some(rotation)) => Output::Rotated(Rotator::new(path.into(), *rotation)),
                (path, None) => Output::File(append_to(path)?),
            });
        }
        Ok(Self(outputs))
    }

    pub fn captured(captured: Captured) -> Self {
        Self(vec![Output::Captured(captured)])
    }

    pub fn nowhere() -> Self {
        Self(Vec::new())
    }

    pub fn is_journal(&self) -> bool {
        matches!(self.0.as_slice(), [Output::Journal(_)])
    }

    /// One place failing must not silence the others, and there is nobody left to tell.
    pub fn write(&mut self, entry: &Entry, line: &str) {
        for output in &mut self.0 {
            let _ = output.write(entry, line);
        }
    }
}

impl Output {
    fn write(&mut self, entry: &Entry, line: &str) -> io::Result<()> {
        match self {
            // One write per line, so that lines of several processes do not mix.
            Self::Stderr => io::stderr().lock().write_all(line.as_bytes()),
            Self::Stdout => io::stdout().lock().write_all(line.as_bytes()),
            Self::File(file) => file.write_all(line.as_bytes()),
            Self::Rotated(rotator) => rotator.write(line.as_bytes()),
            Self::Journal(journal) => journal.send(entry, line),
            Self::Captured(captured) => {
                captured.push(line);
                Ok(())
            }
        }
    }
}

fn append_to(path: &str) -> Result<File, String> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| format!("open sink {}: open {path}: {}", quote(path), reason(&error)))
}

/// The system's words without Rust's number behind them, as Go prints them: in lower case.
pub(crate) fn reason(error: &io::Error) -> String {
    let Some(code) = error.raw_os_error() else { return error.to_string() };
    let text = error.to_string();
    let bare = text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text);
    let mut letters = bare.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
