//! Group configs (KIP-848, KIP-932, KIP-1071): the table, the broker settings that they fall back on, and the broker's bounds.

use std::collections::BTreeMap;

use super::broker;
use super::key::{self, Key, keys};
use super::layers::{BrokerLayers, Lookup};
use super::value::Value;

const ISOLATION_LEVELS: &[&str] = &["read_committed", "read_uncommitted"];

/// Sorted by name.
pub static GROUP_KEYS: &[Key] = keys! {
    "consumer.assignment.interval.ms" Int "1000" [AtLeast(0)] ClusterWide:
        "Shortest time between two assignments of this consumer group.";
    "consumer.assignor.offload.enable" Boolean "true" [Any] ClusterWide internal:
        "Whether this consumer group's assignments are computed beside the coordinator.";
    "consumer.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ClusterWide:
        "How often members of this consumer group send a heartbeat.";
    "consumer.session.timeout.ms" Int "45000" [AtLeast(1)] ClusterWide:
        "How long a member of this consumer group may be silent before it is removed.";
    "errors.deadletterqueue.copy.record.enable" Boolean "false" [Any] ClusterWide:
        "Whether a dead letter carries the record's key and value, or only tells where it was.";
    "errors.deadletterqueue.topic.name" String "" [Any] ClusterWide:
        "Topic for records that this share group gives up; empty keeps none.";
    "share.assignment.interval.ms" Int "1000" [AtLeast(0)] ClusterWide:
        "Shortest time between two assignments of this share group.";
    "share.assignor.offload.enable" Boolean "true" [Any] ClusterWide internal:
        "Whether this share group's assignments are computed beside the coordinator.";
    "share.auto.offset.reset" String "latest" [OffsetReset] ClusterWide:
        "Where this share group begins to read: latest, earliest, or by_duration: and how far back.";
    "share.delivery.count.limit" Int "5" [AtLeast(2)] ClusterWide:
        "How often a record is delivered to this share group before it is given up.";
    "share.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ClusterWide:
        "How often members of this share group send a heartbeat.";
    "share.isolation.level" String "read_uncommitted" [OneOf(ISOLATION_LEVELS)] ClusterWide:
        "Whether this share group sees records of transactions that are open or aborted.";
    "share.partition.max.record.locks" Int "2000" [AtLeast(100)] ClusterWide:
        "Records of a partition that this share group may hold locked at once.";
    "share.record.lock.duration.ms" Int "30000" [AtLeast(1000)] ClusterWide:
        "How long a consumer of this share group holds a record before it is offered again.";
    "share.renew.acknowledge.enable" Boolean "true" [Any] ClusterWide:
        "Whether consumers of this share group may renew their hold on a record.";
    "share.session.timeout.ms" Int "45000" [AtLeast(1)] ClusterWide:
        "How long a member of this share group may be silent before it is removed.";
    "streams.acceptable.recovery.lag" Long "10000" [AtLeast(0)] ClusterWide internal:
        "Lag up to which a task of this streams group counts as caught up.";
    "streams.assignment.interval.ms" Int "1000" [AtLeast(0)] ClusterWide:
        "Shortest time between two assignments of this streams group.";
    "streams.assignor.name" String null [Any] ClusterWide:
        "Assignor of this streams group; the broker's first one when it is not set.";
    "streams.assignor.offload.enable" Boolean "true" [Any] ClusterWide internal:
        "Whether this streams group's assignments are computed beside the coordinator.";
    "streams.heartbeat.interval.ms" Int "5000" [AtLeast(1)] ClusterWide:
        "How often members of this streams group send a heartbeat.";
    "streams.initial.rebalance.delay.ms" Int "3000" [AtLeast(0)] ClusterWide:
        "How long the first assignment of this streams group waits for more members.";
    "streams.num.standby.replicas" Int "0" [AtLeast(0)] ClusterWide:
        "Standby replicas of each stateful task of this streams group.";
    "streams.num.warmup.replicas" Int "2" [AtLeast(0)] ClusterWide internal:
        "Warm-up replicas that this streams group may use at once.";
    "streams.rack.aware.assignment.tags" List "" [Distinct] ClusterWide:
        "Client tags over which this streams group spreads its standby replicas.";
    "streams.session.timeout.ms" Int "45000" [AtLeast(1)] ClusterWide:
        "How long a member of this streams group may be silent before it is removed.";
    "streams.task.offset.interval.ms" Int "60000" [AtLeast(1)] ClusterWide internal:
        "How often members of this streams group tell their task offsets.";
};

pub fn find(name: &str) -> Option<&'static Key> {
    key::find(GROUP_KEYS, name)
}

/// The broker key that a group key falls back on.
pub fn broker_name(name: &str) -> Option<&'static str> {
    if name == "streams.assignor.name" {
        return Some("group.streams.assignors");
    }
    find(name)?;
    broker::find(&format!("group.{name}")).map(|key| key.name)
}

/// The value that counts for a group with these overrides. Values outside the broker's bounds are those that were legal once: the
/// nearest legal one counts.
pub fn effective_value(name: &str, overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> Option<Value> {
    let key = find(name)?;
    let own = overrides.value(name).and_then(|text| key.parse(text).ok());
    let inherited = || match (broker_name(name), name) {
        (Some(broker_key), "streams.assignor.name") => match broker::effective_value(broker_key, below) {
            Some(Value::List(assignors)) => assignors.into_iter().next().map(Value::Text),
            _ => None,
        },
        (Some(broker_key), _) => broker::effective_value(broker_key, below),
        (None, _) => None,
    };
    let value = own.or_else(inherited).or_else(|| key.default_value())?;
    Some(match value {
        Value::Integer(number) => Value::Integer(Limits::of(name, below).nearest(number)),
        other => other,
    })
}

/// What the broker allows a group to set.
#[derive(Default)]
struct Limits {
    min: Option<i64>,
    max: Option<i64>,
}

impl Limits {
    fn of(name: &str, below: &BrokerLayers<'_>) -> Limits {
        let limit = |word: &str| {
            let (kind, rest) = name.split_once('.')?;
            let rest = rest.strip_prefix("num.").unwrap_or(rest);
            broker::effective_integer(&format!("group.{kind}.{word}.{rest}"), below)
        };
        Limits { min: limit("min"), max: limit("max") }
    }

    fn nearest(&self, number: i64) -> i64 {
        let number = self.max.map_or(number, |max| number.min(max));
        self.min.map_or(number, |min| number.max(min))
    }

    fn check(&self, name: &str, number: i64) -> Result<(), String> {
        match (self.min, self.max) {
            (Some(min), Some(max)) if number < min || number > max => {
                Err(format!("{name} must be in the range {min} to {max} inclusive."))
            }
            (Some(min), None) if number < min => Err(format!("{name} must be greater than or equal to {min}")),
            (None, Some(max)) if number > max => Err(format!("{name} must be less than or equal to {max}")),
            _ => Ok(()),
        }
    }
}

/// Checks all overrides of a group together.
///
/// # Errors
/// The sentence to answer with INVALID_CONFIG.
pub fn validate_group(overrides: &BTreeMap<String, String>, below: &BrokerLayers<'_>) -> Result<(), String> {
    for name in overrides.keys() {
        find(name).ok_or_else(|| format!("Unknown group config name: {name}"))?;
    }
    let mut numbers = Vec::new();
    for (name, text) in overrides {
        let Some(key) = find(name) else { continue };
        match key.parse(text)? {
            Value::Integer(number) => numbers.push((key.name, number)),
            Value::Text(text) => check_text(key.name, &text, below)?,
            _ => {}
        }
    }
    for (name, number) in numbers {
        Limits::of(name, below).check(name, number)?;
    }
    ["consumer", "share", "streams"].iter().try_for_each(|kind| check_heartbeat(kind, overrides, below))
}

fn check_text(name: &str, text: &str, below: &BrokerLayers<'_>) -> Result<(), String> {
    match name {
        "streams.assignor.name" => {
            let registered = broker::effective_value("group.streams.assignors", below);
            let Some(Value::List(registered)) = registered else { return Ok(()) };
            if registered.iter().any(|one| one == text) {
                return Ok(());
            }
            let registered = registered.join(", ");
            Err(format!("{name} '{text}' is not a registered task assignor. Registered assignors are: [{registered}]."))
        }
        "errors.deadletterqueue.topic.name" if text.starts_with("__") => {
            Err(format!("{name}: DLQ topic name must not start with '__'"))
        }
        _ => Ok(()),
    }
}

fn check_heartbeat(kind: &str, overrides: &BTreeMap<String, String>, below: &BrokerLayers<'_>) -> Result<(), String> {
    let integer = |name: &str| match effective_value(name, overrides, below) {
        Some(Value::Integer(number)) => Some(number),
        _ => None,
    };
    let (heartbeat, session) = (format!("{kind}.heartbeat.interval.ms"), format!("{kind}.session.timeout.ms"));
    if !overrides.contains_key(&heartbeat) && !overrides.contains_key(&session) {
        return Ok(());
    }
    match (integer(&heartbeat), integer(&session)) {
        (Some(interval_ms), Some(timeout_ms)) if interval_ms >= timeout_ms => {
            Err(format!("{heartbeat} must be less than {session}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::DEFAULTS_ONLY;
    use super::*;

    fn validate(pairs: &[(&str, &str)]) -> Result<(), String> {
        let overrides = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        validate_group(&overrides, &DEFAULTS_ONLY)
    }

    #[test]
    fn the_table_is_sound_and_complete() {
        key::assert_sound(GROUP_KEYS);
        assert_eq!(GROUP_KEYS.len(), 27);
        assert_eq!(GROUP_KEYS.iter().filter(|key| !key.internal).count(), 21);
    }

    #[test]
    fn broker_bounds_hold() {
        let cases = [
            ("consumer.session.timeout.ms", "1000", "must be in the range 45000 to 60000 inclusive."),
            ("share.record.lock.duration.ms", "70000", "must be in the range 15000 to 60000 inclusive."),
            ("share.delivery.count.limit", "11", "must be in the range 2 to 10 inclusive."),
            ("share.partition.max.record.locks", "5000", "must be in the range 100 to 4000 inclusive."),
            ("consumer.assignment.interval.ms", "20000", "must be in the range 0 to 15000 inclusive."),
            ("streams.num.standby.replicas", "3", "must be less than or equal to 2"),
            ("streams.num.warmup.replicas", "30", "must be less than or equal to 20"),
            ("streams.task.offset.interval.ms", "1", "must be greater than or equal to 15000"),
        ];
        for (name, value, why) in cases {
            assert_eq!(validate(&[(name, value)]), Err(format!("{name} {why}")));
        }
    }

    #[test]
    fn types_come_before_bounds() {
        assert_eq!(
            validate(&[("share.record.lock.duration.ms", "5")]),
            Err("Invalid value 5 for configuration share.record.lock.duration.ms: Value must be at least 1000"
                .to_owned())
        );
        assert_eq!(
            validate(&[("session.timeout.ms", "1")]),
            Err("Unknown group config name: session.timeout.ms".to_owned())
        );
        assert!(validate(&[("share.auto.offset.reset", "by_duration:1h")]).is_err());
        assert_eq!(validate(&[("share.auto.offset.reset", "by_duration:PT1H")]), Ok(()));
    }

    #[test]
    fn assignors_and_dead_letter_topics_are_checked() {
        assert!(validate(&[("streams.assignor.name", "zzz")]).is_err_and(|why| why.contains("[sticky]")));
        assert_eq!(validate(&[("streams.assignor.name", "sticky")]), Ok(()));
        assert!(validate(&[("errors.deadletterqueue.topic.name", "__x")]).is_err());
    }

    #[test]
    fn groups_inherit_from_the_broker() {
        let fixed = BTreeMap::from([("group.consumer.session.timeout.ms", "50000")]);
        let below = BrokerLayers { fixed: &fixed, ..DEFAULTS_ONLY };
        assert_eq!(effective_value("consumer.session.timeout.ms", &(), &below), Some(Value::Integer(50_000)));
        let own = BTreeMap::from([("consumer.session.timeout.ms", "70000")]);
        assert_eq!(effective_value("consumer.session.timeout.ms", &own, &below), Some(Value::Integer(60_000)));
        assert_eq!(effective_value("streams.assignor.name", &(), &below), Some(Value::Text("sticky".to_owned())));
        assert_eq!(
            effective_value("share.isolation.level", &(), &below),
            Some(Value::Text("read_uncommitted".to_owned()))
        );
    }
}
