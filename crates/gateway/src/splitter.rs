//! Cuts a request body into JSON values while it is still arriving.

use crate::BadJson;
use crate::scan::{Scanner, Step};

/// Cuts a request body, as it arrives, into whole JSON values: the messages of a client's stream.
///
/// Feed what arrived, then take values until there is none. What is kept between calls is at most
/// one unfinished value and what was fed last.
pub struct Splitter {
    scanner: Scanner,
    /// What has not been given out: white space and values.
    bytes: Vec<u8>,
    /// Up to here `bytes` has been given out.
    taken: usize,
    /// Where the unfinished value begins, once it has.
    begun: Option<usize>,
    /// Up to here `bytes` has been scanned.
    scanned: usize,
    value_bytes_max: usize,
    failed: Option<BadJson>,
}

impl Splitter {
    /// Values longer than `value_bytes_max` are refused.
    pub fn new(value_bytes_max: usize) -> Splitter {
        Splitter {
            scanner: Scanner::new(),
            bytes: Vec::new(),
            taken: 0,
            begun: None,
            scanned: 0,
            value_bytes_max,
            failed: None,
        }
    }

    /// Adds what arrived. After an error it is dropped unread.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        // Moves the unfinished value to the front once per arrival, not once per value.
        self.bytes.drain(..self.taken);
        self.scanned -= self.taken;
        self.begun = self.begun.map(|begun| begun - self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole value; `None` when more bytes are needed. After an error the body counts as
    /// ended: every further call gives the same error.
    pub fn next_value(&mut self) -> Result<Option<Vec<u8>>, BadJson> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        while let Some(byte) = self.bytes.get(self.scanned) {
            match self.scanner.step(*byte) {
                Ok(Step::NotBegun) => {
                    self.scanned += 1;
                    self.taken = self.scanned;
                }
                Ok(Step::Within) => {
                    let begun = *self.begun.get_or_insert(self.scanned);
                    self.scanned += 1;
                    self.scanned += self.scanner.plain(&self.bytes[self.scanned..]);
                    if self.scanned - begun > self.value_bytes_max {
                        return Err(self.too_long());
                    }
                }
                Ok(Step::Ended) => {
                    self.scanned += 1;
                    return self.take().map(Some);
                }
                Ok(Step::EndedBefore) => return self.take().map(Some),
                Err(bad) => return Err(self.fail(bad)),
            }
        }
        Ok(None)
    }

    /// The body has ended. The last value, if it was waiting for its end (a bare number); an error
    /// if it was cut short. Call it once `next_value` gives `None`.
    pub fn finish(&mut self) -> Result<Option<Vec<u8>>, BadJson> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        match self.scanner.finish() {
            Ok(true) => self.take().map(Some),
            Ok(false) => Ok(None),
            Err(bad) => Err(self.fail(bad)),
        }
    }

    fn take(&mut self) -> Result<Vec<u8>, BadJson> {
        let begun = self.begun.take().expect("no value begins and ends in the same step");
        if self.scanned - begun > self.value_bytes_max {
            return Err(self.too_long());
        }
        self.taken = self.scanned;
        Ok(self.bytes[begun..self.scanned].to_vec())
    }

    fn too_long(&mut self) -> BadJson {
        self.fail(BadJson(format!("a message is larger than {} bytes", self.value_bytes_max)))
    }

    fn fail(&mut self, bad: BadJson) -> BadJson {
        self.bytes = Vec::new();
        self.failed = Some(bad.clone());
        bad
    }
}
