//! The requests of a load: encoded once, with only the key's bytes new each time.
//!
//! A protobuf message is its fields in any order, so a request is two pieces: the key, written
//! afresh, and everything else, encoded when the load was planned and shared from then on.

use api::etcdserverpb::{PutRequest, RangeRequest};
use bytes::Bytes;
use prost::Message;
use prost::encoding::encode_varint;

use super::Error;
use super::line::Request;

pub const PUT: &str = "/etcdserverpb.KV/Put";
pub const RANGE: &str = "/etcdserverpb.KV/Range";

/// Different values in circulation, so that no layer profits from always seeing the same one.
const VALUES: usize = 64;

/// Where the next request comes from.
pub trait Source: Send {
    fn next(&mut self) -> Request;
    /// The warm-up is over; what counts begins.
    fn rewind(&mut self) {}
}

/// Which keys are used: numbers below `space`, as zero-padded decimals of `size` bytes.
#[derive(Clone, Debug)]
pub struct KeySpace {
    pub size: usize,
    pub space: u64,
    pub random: bool,
    pub seed: u64,
}

impl KeySpace {
    pub fn check(&self) -> Result<(), Error> {
        let digits = (self.space.max(1) - 1).to_string().len();
        if self.size >= digits {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--key-size={} is too small for --key-space={}: {digits} digits are needed",
            self.size, self.space
        )))
    }

    /// The keys of one of several threads. In sequence, the threads together use each key once
    /// before any is used again.
    pub fn keys(&self, thread: u64, threads: u64) -> Keys {
        Keys {
            space: self.clone(),
            first: thread,
            next: thread,
            stride: threads,
            random: Random(self.seed ^ (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        }
    }
}

pub struct Keys {
    space: KeySpace,
    first: u64,
    next: u64,
    stride: u64,
    random: Random,
}

impl Keys {
    /// The next key as field 1 of a request: tag, length, bytes.
    fn field(&mut self) -> Bytes {
        let number = if self.space.random {
            self.random.below(self.space.space)
        } else {
            let number = self.next % self.space.space;
            self.next += self.stride;
            number
        };
        key_field(number, self.space.size)
    }
}

/// Puts on keys of the space, with values of one size.
pub struct Puts {
    keys: Keys,
    values: Vec<Bytes>,
    turn: usize,
}

impl Puts {
    pub fn new(keys: Keys, value_bytes: usize) -> Puts {
        let mut random = Random(keys.random.0 ^ 0x5eed);
        let value = |_| {
            let value: Vec<u8> = (0..value_bytes).map(|_| random.next() as u8).collect();
            let rest = PutRequest { value: value.into(), ..Default::default() };
            Bytes::from(rest.encode_to_vec())
        };
        Puts { values: (0..VALUES).map(value).collect(), keys, turn: 0 }
    }
}

impl Source for Puts {
    fn next(&mut self) -> Request {
        self.turn = (self.turn + 1) % VALUES;
        Request { path: PUT, parts: [self.keys.field(), self.values[self.turn].clone()] }
    }

    fn rewind(&mut self) {
        self.keys.next = self.keys.first;
    }
}

/// Reads of keys of the space; with a limit, of that many keys from a key on.
pub struct Ranges {
    keys: Keys,
    rest: Bytes,
}

impl Ranges {
    pub fn new(keys: Keys, serializable: bool, limit: u64) -> Ranges {
        let mut rest = RangeRequest { serializable, ..Default::default() };
        if limit > 0 {
            // Every key is decimal digits, so all of them end before this one.
            rest.range_end = Bytes::from_static(b":");
            rest.limit = limit as i64;
        }
        Ranges { keys, rest: rest.encode_to_vec().into() }
    }
}

impl Source for Ranges {
    fn next(&mut self) -> Request {
        Request { path: RANGE, parts: [self.keys.field(), self.rest.clone()] }
    }

    fn rewind(&mut self) {
        self.keys.next = self.keys.first;
    }
}

/// Both at random: `read_percent` of the requests are reads.
pub struct Mixed {
    pub puts: Puts,
    pub ranges: Ranges,
    pub read_percent: u64,
    pub random: Random,
}

impl Source for Mixed {
    fn next(&mut self) -> Request {
        if self.random.below(100) < self.read_percent {
            self.ranges.next()
        } else {
            self.puts.next()
        }
    }
}

fn key_field(mut number: u64, size: usize) -> Bytes {
    let mut field = Vec::with_capacity(size + 6);
    field.push(0x0a);
    encode_varint(size as u64, &mut field);
    let begin = field.len();
    field.resize(begin + size, b'0');
    for digit in field[begin..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    field.into()
}

/// A small generator (splitmix64): a load of a given seed is the same every time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(space: u64, random: bool) -> KeySpace {
        KeySpace { size: 8, space, random, seed: 1 }
    }

    fn joined(request: &Request) -> Vec<u8> {
        request.parts.concat()
    }

    #[test]
    fn a_put_is_what_prost_would_read() {
        let mut puts = Puts::new(space(100, false).keys(7, 10), 300);
        let put = PutRequest::decode(joined(&puts.next()).as_slice()).expect("well-formed");
        assert_eq!(&put.key[..], b"00000007");
        assert_eq!(put.value.len(), 300);
        let put = PutRequest::decode(joined(&puts.next()).as_slice()).expect("well-formed");
        assert_eq!(&put.key[..], b"00000017");
    }

    #[test]
    fn a_range_is_one_key_or_the_keys_from_there_on() {
        let mut ranges = Ranges::new(space(10, false).keys(0, 1), true, 0);
        let range = RangeRequest::decode(joined(&ranges.next()).as_slice()).expect("well-formed");
        assert_eq!((&range.key[..], range.serializable), (&b"00000000"[..], true));
        assert!(range.range_end.is_empty());
        let mut ranges = Ranges::new(space(10, false).keys(3, 5), false, 20);
        let range = RangeRequest::decode(joined(&ranges.next()).as_slice()).expect("well-formed");
        assert_eq!((&range.key[..], range.limit), (&b"00000003"[..], 20));
        assert!(range.range_end[..] > b"99999999"[..]);
    }

    #[test]
    fn threads_share_a_sequence_without_gaps() {
        let mut seen = Vec::new();
        for thread in 0..3 {
            let mut keys = space(12, false).keys(thread, 3);
            seen.extend((0..4).map(|_| keys.field()));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 12);
    }

    #[test]
    fn random_keys_stay_in_their_space_and_reach_all_of_it() {
        let mut keys = space(10, true).keys(0, 1);
        let mut seen: Vec<Bytes> = (0..1000).map(|_| keys.field()).collect();
        seen.sort();
        seen.dedup();
        let all: Vec<Bytes> = (0..10).map(|number| key_field(number, 8)).collect();
        assert_eq!(seen, all);
    }

    #[test]
    fn a_key_space_must_fit_the_keys() {
        assert!(KeySpace { size: 3, ..space(1000, false) }.check().is_ok());
        let error = KeySpace { size: 3, ..space(1001, false) }.check().expect_err("4 digits");
        assert!(error.to_string().contains("4 digits"), "{error}");
    }
}
