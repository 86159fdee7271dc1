//! The Prometheus text format: families in order of their names, labels in order of theirs.

use crate::value::{Counter, Family, Gauge, Histogram};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One scrape's answer while it is being written.
#[derive(Default)]
pub(crate) struct Page {
    families: BTreeMap<&'static str, String>,
}

/// Something that can write its samples under a family's name.
pub(crate) trait Collect {
    const KIND: &'static str;

    fn collect(&self, samples: &mut Samples);
}

/// The samples of one family.
pub(crate) struct Samples {
    name: &'static str,
    text: String,
}

impl Page {
    /// Adds a family. One without samples is left out, headings and all.
    pub(crate) fn family<T: Collect>(&mut self, name: &'static str, help: &str, values: &T) {
        let heading = format!("# HELP {name} {help}\n# TYPE {name} {}\n", T::KIND);
        let start = heading.len();
        let mut samples = Samples { name, text: heading };
        values.collect(&mut samples);
        if samples.text.len() > start {
            let before = self.families.insert(name, samples.text);
            assert!(before.is_none(), "two metrics are called {name}");
        }
    }

    /// A gauge without labels, known only now.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: impl Number) {
        self.family(name, help, &Now(value.number()));
    }

    /// A gauge with labels, known only now.
    pub(crate) fn labelled_gauge(
        &mut self,
        name: &'static str,
        help: &str,
        series: &[(&[(&str, &str)], f64)],
    ) {
        self.family(name, help, &series);
    }

    /// A counter that somebody else keeps.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str, value: impl Number) {
        self.family(name, help, &Total(value.number()));
    }

    pub(crate) fn text(self) -> String {
        self.families.into_values().collect()
    }
}

impl Samples {
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: impl Number) {
        self.line("", labels, None, value.number());
    }

    pub(crate) fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut count = 0;
        for (bound, below) in histogram.cumulative() {
            self.line("_bucket", labels, Some(("le", &float(bound))), below as f64);
            count = below;
        }
        self.line("_sum", labels, None, histogram.sum());
        // The last bucket and not a count of its own, which could differ from it in a busy moment.
        self.line("_count", labels, None, count as f64);
    }

    /// `last` stands behind the sorted labels: where the format wants `le` and `quantile`.
    pub(crate) fn line(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        last: Option<(&str, &str)>,
        value: f64,
    ) {
        debug_assert!(labels.is_sorted_by_key(|(name, _)| *name), "{} {labels:?}", self.name);
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let mut open = '{';
        for (name, value) in labels.iter().copied().chain(last) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.text, "{open}{name}=\"{value}\"").expect("a String takes everything");
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
        self.text.push(' ');
        self.text.push_str(&float(value));
        self.text.push('\n');
    }
}

/// A number as Go prints it, because text tools compare: six digits before the exponent begins.
fn float(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{value}"),
    }
}

/// What can be a sample's value. Beyond 2^53 the format itself is not exact.
pub(crate) trait Number {
    fn number(self) -> f64;
}

impl Number for f64 {
    fn number(self) -> f64 {
        self
    }
}

impl Number for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Number for i64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

struct Now(f64);

impl Collect for Now {
    const KIND: &'static str = "gauge";

    fn collect(&self, samples: &mut Samples) {
        samples.add(&[], self.0);
    }
}

struct Total(f64);

impl Collect for Total {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        samples.add(&[], self.0);
    }
}

impl Collect for &[(&[(&str, &str)], f64)] {
    const KIND: &'static str = "gauge";

    fn collect(&self, samples: &mut Samples) {
        for (labels, value) in *self {
            samples.add(labels, *value);
        }
    }
}

impl Collect for Counter {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        samples.add(&[], self.get());
    }
}

impl Collect for Gauge {
    const KIND: &'static str = "gauge";

    fn collect(&self, samples: &mut Samples) {
        samples.add(&[], self.get());
    }
}

impl Collect for Histogram {
    const KIND: &'static str = "histogram";

    fn collect(&self, samples: &mut Samples) {
        samples.histogram(&[], self);
    }
}

/// Labelled counters and histograms appear with their first observation, so that a handle can be
/// taken early without showing a series; gauges appear as soon as they are asked for.
impl Collect for Family<Counter> {
    const KIND: &'static str = "counter";

    fn collect(&self, samples: &mut Samples) {
        for (values, counter) in self.all().iter().filter(|(_, counter)| counter.get() > 0) {
            samples.add(&self.pairs(values), counter.get());
        }
    }
}

impl Collect for Family<Gauge> {
    const KIND: &'static str = "gauge";

    fn collect(&self, samples: &mut Samples) {
        for (values, gauge) in self.all() {
            samples.add(&self.pairs(&values), gauge.get());
        }
    }
}

impl Collect for Family<Histogram> {
    const KIND: &'static str = "histogram";

    fn collect(&self, samples: &mut Samples) {
        for (values, histogram) in self.all().iter().filter(|(_, held)| held.count() > 0) {
            samples.histogram(&self.pairs(values), histogram);
        }
    }
}

impl<T> Family<T> {
    fn pairs<'a>(&self, values: &'a [String]) -> Vec<(&'static str, &'a str)> {
        self.labels.iter().copied().zip(values.iter().map(String::as_str)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_go_prints_them() {
        let cases = [
            (0.0, "0"),
            (-1.0, "-1"),
            (528.0, "528"),
            (999_999.0, "999999"),
            (1_000_000.0, "1e+06"),
            (2_147_483_648.0, "2.147483648e+09"),
            (8_388_608.0, "8.388608e+06"),
            (0.0001, "0.0001"),
            (0.0512, "0.0512"),
            (0.00001, "1e-05"),
            (8.9688e-05, "8.9688e-05"),
            (u64::MAX as f64, "1.8446744073709552e+19"),
            (f64::INFINITY, "+Inf"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let mut page = Page::default();
        page.labelled_gauge("name", "help", &[(&[("reason", "a \"b\"\\\n")], 1.0)]);
        let expected =
            "# HELP name help\n# TYPE name gauge\nname{reason=\"a \\\"b\\\"\\\\\\n\"} 1\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn a_histogram_counts_values_at_its_bounds_as_below_them() {
        let histogram = Histogram::exponential(1.0, 2.0, 2);
        for value in [0.5, 1.0, 1.5, 2.0, 100.0] {
            histogram.observe(value);
        }
        let mut page = Page::default();
        page.family("h", "help", &histogram);
        let expected = "# HELP h help\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\n\
             h_bucket{le=\"2\"} 4\nh_bucket{le=\"+Inf\"} 5\nh_sum 105\nh_count 5\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn labelled_series_appear_with_their_first_observation() {
        let family = Family::new(&["To"], Counter::default);
        let early = family.with(&["a"]);
        let mut page = Page::default();
        page.family("c", "help", &family);
        assert_eq!(page.text(), "");
        early.inc();
        let mut page = Page::default();
        page.family("c", "help", &family);
        assert_eq!(page.text(), "# HELP c help\n# TYPE c counter\nc{To=\"a\"} 1\n");
    }
}
