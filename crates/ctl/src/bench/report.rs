//! What a run prints: a few aligned lines for people, or one JSON object for scripts.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::histogram::Histogram;
use super::load::ServerUsage;

/// Named figures in the order they are printed.
pub struct Report {
    title: String,
    lines: Vec<(&'static str, String)>,
    json: Map<String, Value>,
}

impl Report {
    pub fn new(title: impl Into<String>) -> Report {
        let title = title.into();
        let json = Map::from_iter([("run".to_string(), Value::from(title.clone()))]);
        Report { title, lines: Vec::new(), json }
    }

    /// One figure: how it is read, and how it is parsed.
    pub fn figure(&mut self, name: &'static str, text: String, value: impl Into<Value>) {
        self.lines.push((name, text));
        self.json.insert(name.replace(' ', "_"), value.into());
    }

    pub fn latency(&mut self, name: &'static str, histogram: &Histogram) {
        if histogram.count() == 0 {
            return;
        }
        let points = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)];
        let points = points.map(|(name, percent)| (name, histogram.percentile(percent)));
        let mut text = points.map(|(name, time)| format!("{name} {}", time_text(time))).join("  ");
        text.push_str(&format!("  (mean {})", time_text(histogram.mean())));
        let mut micros: Map<String, Value> = points
            .iter()
            .map(|(name, time)| (format!("{name}_us"), json!(micros(*time))))
            .collect();
        micros.insert("mean_us".to_string(), json!(self::micros(histogram.mean())));
        self.figure(name, text, micros);
    }

    /// CPU of both sides and the server's memory. `unit` is what was counted, as in "put".
    pub fn usage(&mut self, server: Option<ServerUsage>, generator: Duration, n: u64, unit: &str) {
        let per = |cpu: Duration| micros(cpu) / n.max(1) as f64;
        let text = |cpu: Duration| {
            format!("{:.2} µs per {unit}, {:.2} s in all", per(cpu), cpu.as_secs_f64())
        };
        let value = |cpu: Duration| json!({ "us_per_op": per(cpu), "s": cpu.as_secs_f64() });
        if let Some(server) = server {
            self.figure("server cpu", text(server.cpu), value(server.cpu));
            let memory = format!(
                "{:.1} MB resident, {:.1} MB at most",
                megabytes(server.rss_bytes),
                megabytes(server.rss_peak_bytes)
            );
            let bytes = json!({ "rss": server.rss_bytes, "peak": server.rss_peak_bytes });
            self.figure("server memory", memory, bytes);
        }
        self.figure("generator cpu", text(generator), value(generator));
    }

    pub fn print(&self, as_json: bool) {
        if as_json {
            println!("{}", Value::Object(self.json.clone()));
            return;
        }
        println!("{}", self.title);
        for (name, text) in &self.lines {
            println!("  {name:<16} {text}");
        }
    }
}

/// A duration with three digits and a fitting unit.
pub fn time_text(time: Duration) -> String {
    let micros = micros(time);
    match micros {
        0.0..1_000.0 => format!("{micros:.0} µs"),
        0.0..10_000.0 => format!("{:.2} ms", micros / 1e3),
        0.0..1_000_000.0 => format!("{:.0} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_a_fitting_unit() {
        let text = |micros| time_text(Duration::from_micros(micros));
        assert_eq!(text(70), "70 µs");
        assert_eq!(text(1_234), "1.23 ms");
        assert_eq!(text(45_678), "46 ms");
        assert_eq!(text(2_500_000), "2.50 s");
    }
}
