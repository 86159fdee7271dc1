//! The table of a comparison: medians of both servers, and the ratio with its spread.

use serde_json::{Value, json};

/// One measured quantity of both servers, one value of each per round.
pub struct Row {
    name: String,
    unit: &'static str,
    goal: &'static str,
    /// etcd's, then Althing's.
    values: [Vec<f64>; 2],
}

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds one value of one server (0 is etcd, 1 is Althing) to the row of that name.
    pub fn add(
        &mut self,
        name: &str,
        unit: &'static str,
        goal: &'static str,
        which: usize,
        value: f64,
    ) {
        let found = self.rows.iter().position(|row| row.name == name);
        let place = found.unwrap_or_else(|| {
            let name = name.to_string();
            self.rows.push(Row { name, unit, goal, values: Default::default() });
            self.rows.len() - 1
        });
        self.rows[place].values[which].push(value);
    }

    /// As Markdown, so that it can be pasted into a document.
    pub fn markdown(&self) -> String {
        let mut text = "| measure | etcd | Althing | Althing / etcd (min..max) | goal |\n\
                        |---|---:|---:|---:|---|\n"
            .to_string();
        for row in &self.rows {
            let [etcd, althing] = [0, 1].map(|which| quantity(median(&row.values[which])));
            let ratios = row.ratios();
            let ratio = match spread(&ratios) {
                Some((low, high)) => format!("{:.2} ({low:.2}..{high:.2})", median(&ratios)),
                None => "-".to_string(),
            };
            let (name, unit, goal) = (&row.name, row.unit, row.goal);
            text.push_str(&format!("| {name}, {unit} | {etcd} | {althing} | {ratio} | {goal} |\n"));
        }
        text
    }

    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "measure": row.name,
                "unit": row.unit,
                "goal": row.goal,
                "etcd": row.values[0],
                "althing": row.values[1],
                "ratios": row.ratios(),
                "ratio_median": median(&row.ratios()),
            })
        });
        rows.collect()
    }
}

impl Row {
    /// Althing's value over etcd's of the same round: what slows the machine down for a while slows
    /// both, and drops out.
    fn ratios(&self) -> Vec<f64> {
        let pairs = self.values[0].iter().zip(&self.values[1]);
        pairs.filter(|(etcd, _)| **etcd > 0.0).map(|(etcd, althing)| althing / etcd).collect()
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    Some((low, high))
}

/// A number with about three digits.
fn quantity(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut table = Table::default();
        for (etcd, althing) in [(100.0, 210.0), (50.0, 100.0), (200.0, 500.0)] {
            table.add("put", "1/s", ">= 2", 0, etcd);
            table.add("put", "1/s", ">= 2", 1, althing);
        }
        let expected = "| put, 1/s | 100 | 210 | 2.10 (2.00..2.50) | >= 2 |";
        assert_eq!(table.markdown().lines().last(), Some(expected));
        assert_eq!(table.json()[0]["ratio_median"], 2.1);
    }

    #[test]
    fn the_median_of_few() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[3.0, 1.0]), 2.0);
        assert_eq!(median(&[9.0, 1.0, 3.0]), 3.0);
    }
}
