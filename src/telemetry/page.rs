//! The metrics page in Prometheus' text format 0.0.4. Samples may come in any order; the page keeps each metric's lines together,
//! writes its help and type once, and stops a metric at [`crate::base::limits::SERIES_PER_METRIC_MAX`] lines.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::names::{self, Kind, Metric};
use super::samples::Sums;
use crate::base::limits::{LABEL_CHARS_MAX, SERIES_PER_METRIC_MAX};

/// What an upper floor adds to every page: numbers that are cheaper to compute when asked than to keep.
pub trait ScrapeSource: Send + Sync {
    /// Runs on a thread that may block, never concurrently with itself. Take no lock that the hot path waits for.
    fn scrape(&self, page: &mut Page);
}

#[derive(Default)]
struct Family {
    text: String,
    series: usize,
}

/// A page in the making.
#[derive(Default)]
pub struct Page {
    families: BTreeMap<&'static str, (&'static Metric, Family)>,
    pub(super) sums: Sums,
    dropped: u64,
}

impl Page {
    /// One sample. `labels` are the values of `metric.labels`, in their order; an empty one is left out, which means the same.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.line(metric, "", labels, None, value);
    }

    pub(super) fn add_quantile(&mut self, metric: &'static Metric, labels: &[&str], quantile: &str, value: f64) {
        self.line(metric, "", labels, Some(("quantile", quantile)), value);
    }

    pub(super) fn add_summary_end(&mut self, metric: &'static Metric, labels: &[&str], count: u64, sum: f64) {
        self.line(metric, "_sum", labels, None, sum);
        self.line(metric, "_count", labels, None, count as f64);
    }

    pub(super) fn add_bucket(&mut self, metric: &'static Metric, labels: &[&str], bound: f64, count: u64) {
        self.line(metric, "_bucket", labels, Some(("le", &bound.to_string())), count as f64);
    }

    pub(super) fn add_bucket_end(&mut self, metric: &'static Metric, labels: &[&str], count: u64, sum: f64) {
        self.line(metric, "_bucket", labels, Some(("le", "+Inf")), count as f64);
        self.add_summary_end(metric, labels, count, sum);
    }

    /// The finished text.
    pub fn finish(mut self) -> String {
        std::mem::take(&mut self.sums).write(&mut self);
        let dropped = self.dropped;
        self.add(&names::SERIES_DROPPED, &[], dropped as f64);
        let mut text = String::with_capacity(self.families.values().map(|(_, family)| family.text.len() + 200).sum());
        for (metric, family) in self.families.values() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {} {}", metric.name, metric.help);
            let _ = writeln!(text, "# TYPE {} {}", metric.name, metric.kind.as_str());
            text.push_str(&family.text);
        }
        text
    }

    fn line(
        &mut self,
        metric: &'static Metric,
        suffix: &str,
        labels: &[&str],
        extra: Option<(&str, &str)>,
        value: f64,
    ) {
        debug_assert_eq!(labels.len(), metric.labels.len(), "labels of {}", metric.name);
        let (_, family) = self.families.entry(metric.name).or_insert_with(|| (metric, Family::default()));
        if family.series >= SERIES_PER_METRIC_MAX {
            self.dropped += 1;
            return;
        }
        family.series += 1;
        let text = &mut family.text;
        text.push_str(metric.name);
        text.push_str(suffix);
        let pairs = metric.labels.iter().copied().zip(labels.iter().copied()).chain(extra);
        let mut open = '{';
        for (name, label) in pairs.filter(|(_, label)| !label.is_empty()) {
            text.push(open);
            text.push_str(name);
            text.push_str("=\"");
            push_label(text, label);
            text.push('"');
            open = ',';
        }
        if open == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        }
    }
}

/// Escapes a label's value. A very long one (group ids may be 32 KiB) is cut and keeps its identity by a hash.
fn push_label(text: &mut String, label: &str) {
    let (head, tail) = match label.char_indices().nth(LABEL_CHARS_MAX) {
        Some((cut, _)) => label.split_at(cut),
        None => (label, ""),
    };
    for character in head.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    if !tail.is_empty() {
        let _ = write!(text, "~{:08x}", crate::base::ids::java_hash(label));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TWO: Metric = Metric { name: "two_labels", kind: Kind::Gauge, help: "Two.", labels: &["a", "b"] };

    #[test]
    fn lines_of_one_metric_stand_together_under_one_header() {
        let mut page = Page::default();
        page.add(&TWO, &["1", "x"], 1.5);
        page.add(&names::BROKERS, &[], 3.0);
        page.add(&TWO, &["2", "a\"b\\c\nd"], -1.0);
        let text = page.finish();
        let expected = "# HELP two_labels Two.\n# TYPE two_labels gauge\n\
            two_labels{a=\"1\",b=\"x\"} 1.5\ntwo_labels{a=\"2\",b=\"a\\\"b\\\\c\\nd\"} -1\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_metric_stops_at_its_bound_and_says_so() {
        let mut page = Page::default();
        for number in 0..SERIES_PER_METRIC_MAX + 3 {
            page.add(&TWO, &["1", &number.to_string()], 0.0);
        }
        let text = page.finish();
        assert_eq!(text.lines().filter(|line| line.starts_with("two_labels")).count(), SERIES_PER_METRIC_MAX);
        assert!(text.contains("\nbarnabas_series_dropped 3\n"));
    }

    #[test]
    fn long_labels_are_cut_and_stay_different() {
        let lines: Vec<String> = ["x", "y"]
            .iter()
            .map(|end| {
                let mut page = Page::default();
                page.add(&TWO, &[&("g".repeat(20_000) + end), ""], 0.0);
                page.finish()
            })
            .collect();
        assert!(lines[0].len() < 1000);
        assert_ne!(lines[0], lines[1]);
    }
}
