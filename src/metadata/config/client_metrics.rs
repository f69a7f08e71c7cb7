//! Client-metrics subscriptions (KIP-714): which clients push which metrics, and how often.

use std::collections::BTreeMap;

use regex::Regex;

use super::key::{self, Key, keys};
use super::value::Value;
use crate::base::ErrorCode;

/// Milliseconds between two pushes that a subscription may ask for.
const INTERVAL_MS: std::ops::RangeInclusive<i64> = 100..=3_600_000;

/// What a client can be chosen by.
const SELECTORS: &[&str] = &[
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Sorted by name.
pub static CLIENT_METRICS_KEYS: &[Key] = keys! {
    "interval.ms" Int "300000" [Any] ClusterWide:
        "How often clients push their metrics.";
    "match" List "" [Any] ClusterWide:
        "Which clients push, selector=pattern each; empty is all of them.";
    "metrics" List "" [Any] ClusterWide:
        "Prefixes of the names of metrics that are pushed; * is all, empty is none.";
};

pub fn find(name: &str) -> Option<&'static Key> {
    key::find(CLIENT_METRICS_KEYS, name)
}

/// Checks all configs of a subscription together.
///
/// # Errors
/// The code and the sentence to answer.
pub fn validate_client_metrics(overrides: &BTreeMap<String, String>) -> Result<(), (ErrorCode, String)> {
    if let Some(name) = overrides.keys().find(|name| find(name).is_none()) {
        return Err((ErrorCode::INVALID_REQUEST, format!("Unknown client metrics configuration: {name}")));
    }
    for (name, text) in overrides {
        let Some(key) = find(name) else { continue };
        match key.parse(text).map_err(|why| (ErrorCode::INVALID_CONFIG, why))? {
            Value::Integer(interval_ms) if !INTERVAL_MS.contains(&interval_ms) => {
                let why = format!(
                    "Invalid value {interval_ms} for {name}, interval must be between 100 and 3600000 (1 hour)"
                );
                return Err((ErrorCode::INVALID_REQUEST, why));
            }
            Value::List(patterns) if name == "match" => {
                if let Some(bad) = patterns.iter().find(|pattern| !is_pattern(pattern)) {
                    return Err((ErrorCode::INVALID_CONFIG, format!("Illegal client matching pattern: {bad}")));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_pattern(text: &str) -> bool {
    match text.split_once('=') {
        Some((selector, pattern)) => {
            SELECTORS.contains(&selector.trim()) && !pattern.contains('=') && Regex::new(pattern.trim()).is_ok()
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(name: &str, value: &str) -> Result<(), (ErrorCode, String)> {
        validate_client_metrics(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn the_table_is_sound() {
        key::assert_sound(CLIENT_METRICS_KEYS);
    }

    #[test]
    fn intervals_lie_between_a_tenth_of_a_second_and_an_hour() {
        assert_eq!(validate("interval.ms", "60000"), Ok(()));
        let (code, why) = validate("interval.ms", "50").unwrap_err();
        assert_eq!(code, ErrorCode::INVALID_REQUEST);
        assert_eq!(why, "Invalid value 50 for interval.ms, interval must be between 100 and 3600000 (1 hour)");
        assert_eq!(validate("interval.ms", "x").unwrap_err().0, ErrorCode::INVALID_CONFIG);
    }

    #[test]
    fn patterns_need_a_known_selector_and_a_legal_expression() {
        assert_eq!(validate("match", "client_id=raw-.*,client_software_name=librdkafka"), Ok(()));
        for bad in ["no_such_selector=x", "client_id", "client_id=[", "client_id=a=b"] {
            let refused = (ErrorCode::INVALID_CONFIG, format!("Illegal client matching pattern: {bad}"));
            assert_eq!(validate("match", bad), Err(refused));
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert_eq!(validate("no.such.key", "1").unwrap_err().0, ErrorCode::INVALID_REQUEST);
    }
}
