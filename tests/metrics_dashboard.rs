//! Every metric and label that the dashboard and the alert rules name is on the page that our own code writes.

#![expect(clippy::disallowed_methods, reason = "a test reads the repository's own files")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas::admin::ProcessSource;
use barnabas::base::ErrorCode;
use barnabas::host::Host;
use barnabas::telemetry::samples::{ClusterSample, GroupOffsetSample, GroupSample, LogDirSample, PartitionSample};
use barnabas::telemetry::{Answered, Page, Reason, Refusal, ScrapeSource, Telemetry, names};

/// Labels that Prometheus itself adds, and the metric that it makes for each target.
const FROM_PROMETHEUS: [&str; 3] = ["job", "instance", "up"];

/// One of everything that a broker can tell.
struct OneOfEach;

impl ScrapeSource for OneOfEach {
    fn scrape(&self, page: &mut Page) {
        page.cluster(&ClusterSample { brokers: vec![(1, "localhost:9092")], ..ClusterSample::default() });
        page.log_dir(&LogDirSample { dir: "data", offline: false, space_bytes: Some((1, 2)) });
        page.topic("t", 1);
        page.partition(&PartitionSample {
            topic: "t",
            partition: 0,
            size_bytes: 1,
            segments: 1,
            log_start_offset: 0,
            log_end_offset: 1,
            high_watermark: 1,
            leader: 1,
            led_here: true,
            leader_is_preferred: true,
            replicas: 1,
            in_sync: 1,
            min_in_sync: 1,
        });
        page.group(&GroupSample { group: "g", state: "Stable", members: 1 });
        page.group_offset(&GroupOffsetSample {
            group: "g",
            topic: "t",
            partition: 0,
            committed: 0,
            high_watermark: Some(1),
        });
        for metric in
            [&names::FETCH_SESSIONS, &names::UNCLEAN_ELECTIONS, &names::LEADER_ELECTIONS, &names::BROKERS_FENCED]
        {
            page.add(metric, &[], 1.0);
        }
    }
}

fn page() -> String {
    let telemetry = Telemetry::new(1_000);
    let topic = telemetry.topic("t");
    topic.produced(1, 1);
    for (key, name) in [(0, "Produce"), (1, "Fetch")] {
        let api = telemetry.api(key, name);
        api.answered(Answered { version: 9, nanos: 1_000_000, request_bytes: 1, response_bytes: 1 });
        api.outcome(ErrorCode::NONE);
    }
    let listener = telemetry.listener("PLAINTEXT");
    listener.opened();
    listener.introduced("librdkafka", "2.12.1");
    telemetry.disk.flushed(1_000, 1);
    let refusal = Refusal {
        peer: "10.0.0.1:5".parse().unwrap(),
        listener: "PLAINTEXT",
        client_id: None,
        software_name: None,
        software_version: None,
        api_key: None,
        api_name: None,
        api_version: None,
        reason: Reason::InvalidFrame,
        detail: &"test",
    };
    telemetry.refusals.refuse(&refusal, 0);
    telemetry.add_source(Arc::new(ProcessSource::new(Host::real())));
    telemetry.add_source(Arc::new(OneOfEach));
    telemetry.render()
}

/// Each metric on the page with the labels it has there; `_sum`, `_count` and `_bucket` are names of their own.
fn on_the_page(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let end = line.find(['{', ' ']).unwrap();
        let labels = metrics.entry(line[..end].to_owned()).or_default();
        if let Some((inside, _)) = line[end..].strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            labels.extend(inside.split("\",").map(|pair| pair.split_once('=').unwrap().0.to_owned()));
        }
    }
    metrics
}

/// Names in an expression that are ours, and for each the labels its selector names.
fn used_in(text: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut used = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        rest = behind;
        if ["kafka_", "barnabas_", "process_"].iter().any(|prefix| name.starts_with(prefix)) {
            used.push((name.to_owned(), labels_of_selector(behind)));
        }
    }
    used
}

fn labels_of_selector(behind: &str) -> Vec<String> {
    let Some((inside, _)) = behind.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return Vec::new();
    };
    let names = inside.split(',').filter_map(|pair| pair.split(['=', '!', '~']).next());
    names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn grafana(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("grafana").join(file)
}

/// All expressions and queries of the dashboard.
fn dashboard_expressions() -> Vec<String> {
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, field) in fields {
                    match field {
                        serde_json::Value::String(text) if name == "expr" || name == "query" => {
                            found.push(text.clone())
                        }
                        other => collect(other, found),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let text = fs::read_to_string(grafana("dashboard.json")).unwrap();
    let mut found = Vec::new();
    collect(&serde_json::from_str(&text).unwrap(), &mut found);
    assert!(found.len() > 40, "{found:?}");
    found
}

/// The expressions of the alert rules: one line each.
fn alert_expressions() -> Vec<String> {
    let text = fs::read_to_string(grafana("alerts.yml")).unwrap();
    let found: Vec<String> =
        text.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect();
    assert_eq!(found.len(), text.matches("- alert:").count(), "one line for each expression");
    found
}

fn check(expressions: Vec<String>) {
    let have = on_the_page(&page());
    for expression in &expressions {
        for (name, labels) in used_in(expression) {
            let Some(known) = have.get(&name) else {
                panic!("{name} is not on the metrics page; in: {expression}");
            };
            for label in labels.iter().filter(|label| !FROM_PROMETHEUS.contains(&label.as_str())) {
                assert!(known.contains(label), "{name} has no label {label}; in: {expression}");
            }
        }
    }
}

#[test]
fn the_dashboard_uses_only_metrics_that_exist() {
    check(dashboard_expressions());
}

#[test]
fn the_alert_rules_use_only_metrics_that_exist() {
    check(alert_expressions());
}

#[test]
fn grouping_uses_only_labels_that_exist() {
    let have = on_the_page(&page());
    let known: BTreeSet<&str> = have.values().flatten().map(String::as_str).chain(FROM_PROMETHEUS).collect();
    for expression in dashboard_expressions().into_iter().chain(alert_expressions()) {
        for keyword in ["by (", "on ("] {
            for (_, behind) in expression.match_indices(keyword).map(|(at, word)| expression.split_at(at + word.len()))
            {
                for label in behind.split(')').next().unwrap_or("").split(',').map(str::trim) {
                    assert!(known.contains(label), "no metric has a label {label}; in: {expression}");
                }
            }
        }
    }
}

/// So that the check above means something: no name of the table is one that nobody ever writes.
#[test]
fn every_name_in_the_table_can_be_on_a_page() {
    let page = page();
    let missing: Vec<&str> =
        names::ALL.iter().map(|metric| metric.name).filter(|name| !page.contains(&format!("# TYPE {name} "))).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_page_is_well_formed() {
    let page = page();
    let mut seen = BTreeSet::new();
    for line in page.lines() {
        if line.starts_with('#') {
            assert!(line.starts_with("# HELP ") || line.starts_with("# TYPE "), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(series.to_owned()), "twice: {series}");
    }
    assert!(page.ends_with('\n'));
}
