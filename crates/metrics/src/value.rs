//! The things that count: counters, gauges, histograms, and families of them with labels.
//!
//! An update is one or two relaxed atomic additions and takes no lock. A scrape that runs at the
//! same time may see one of two related updates and not the other; the next scrape sees both.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn inc(&self) {
        self.add(1);
    }

    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that comes and goes.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn inc(&self) {
        self.add(1);
    }

    pub fn dec(&self) {
        self.add(-1);
    }

    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub fn set(&self, n: i64) {
        self.0.store(n, Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// How often values fell into each of some fixed ranges, and their sum.
#[derive(Debug)]
pub struct Histogram {
    /// Upper bounds, inclusive, ascending. One more bucket above them takes the rest.
    bounds: Arc<[f64]>,
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
    units_per_second: f64,
}

impl Histogram {
    /// Bounds in seconds: `count` of them from `start`, each `factor` times the one before.
    pub fn exponential(start: f64, factor: f64, count: usize) -> Histogram {
        let bounds = std::iter::successors(Some(start), |bound| Some(bound * factor));
        Histogram::new(bounds.take(count).collect(), 1.0)
    }

    /// The same with bounds in milliseconds.
    pub fn exponential_millis(start: f64, factor: f64, count: usize) -> Histogram {
        let seconds = Histogram::exponential(start, factor, count);
        Histogram { units_per_second: 1000.0, ..seconds }
    }

    fn new(bounds: Arc<[f64]>, units_per_second: f64) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0), units_per_second }
    }

    /// Explicit bounds in seconds.
    pub fn with_bounds(bounds: &[f64]) -> Histogram {
        Histogram::new(bounds.into(), 1.0)
    }

    /// Counts something that took this long.
    pub fn took(&self, time: Duration) {
        self.observe(time.as_secs_f64() * self.units_per_second);
    }

    /// Counts a value that is already in the histogram's unit.
    pub fn observe(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
        let mut sum = self.sum.load(Relaxed);
        loop {
            let next = (f64::from_bits(sum) + value).to_bits();
            match self.sum.compare_exchange_weak(sum, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => sum = now,
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    pub fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Relaxed))
    }

    /// The bounds with the number of values at or below each; the last bound is infinity.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let mut total = 0;
        bounds.zip(self.counts.iter()).map(move |(bound, count)| {
            total += count.load(Relaxed);
            (bound, total)
        })
    }
}

/// A family whose label values are only known as they come: peers, client versions, reasons.
///
/// [`Family::with`] takes a lock; who updates often keeps the `Arc` it returns. A series exists
/// from the first time it is asked for.
pub struct Family<T> {
    pub(crate) labels: &'static [&'static str],
    make: fn() -> T,
    series: Mutex<BTreeMap<Vec<String>, Arc<T>>>,
}

impl<T> Family<T> {
    pub fn new(labels: &'static [&'static str], make: fn() -> T) -> Family<T> {
        Family { labels, make, series: Mutex::new(BTreeMap::new()) }
    }

    /// The series with these label values, in the order of the family's labels.
    pub fn with(&self, values: &[&str]) -> Arc<T> {
        assert_eq!(values.len(), self.labels.len(), "one value for each of {:?}", self.labels);
        let values = values.iter().map(|value| value.to_string()).collect();
        let make = self.make;
        self.lock().entry(values).or_insert_with(|| Arc::new(make())).clone()
    }

    /// Forgets a series: a peer that has left.
    pub fn remove(&self, values: &[&str]) {
        self.lock().retain(|held, _| !held.iter().eq(values));
    }

    pub(crate) fn all(&self) -> Vec<(Vec<String>, Arc<T>)> {
        self.lock().iter().map(|(values, series)| (values.clone(), series.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<String>, Arc<T>>> {
        // No update inside the lock can be left half done, so a poisoned map is still whole.
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Family<Counter> {
    /// Counts in a series unless that would be a new one beyond `series_max`; says whether it did.
    pub(crate) fn inc_within(&self, values: &[&str], series_max: usize) -> bool {
        let mut series = self.lock();
        let key: Vec<String> = values.iter().map(|value| value.to_string()).collect();
        if !series.contains_key(&key) && series.len() >= series_max {
            return false;
        }
        let make = self.make;
        series.entry(key).or_insert_with(|| Arc::new(make())).inc();
        true
    }
}
