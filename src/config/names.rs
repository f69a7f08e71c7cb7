//! Names of settings: which are known, which is meant by a name that is not, and which of them do something.

use std::collections::BTreeSet;

use super::given::Given;
use super::idle::is_idle;
use crate::metadata::config::{broker, topic};

/// How alike two names must be for one to be taken for a slip of the other, from 0 to 1.
const ALIKE: f64 = 0.85;

/// Settings of Kafka versions before 4 that their users still have in files.
const GONE: &[(&str, &str)] = &[
    ("zookeeper.", "no ZooKeeper is needed"),
    ("inter.broker.protocol.version", "brokers of different versions agree by themselves"),
    ("log.message.format.version", "there is one record format"),
    ("log.message.downconversion.enable", "old record formats are gone"),
    ("control.plane.listener.name", "controllers listen on controller.listener.names"),
    ("reserved.broker.max.id", "node ids are always given"),
    ("broker.id.generation.enable", "node ids are always given"),
];

pub fn is_known(name: &str) -> bool {
    broker::find_for_listener(name).is_some()
}

/// The sentence for a name that is no setting.
pub fn unknown(name: &str) -> String {
    if let Some((_, why)) = GONE.iter().find(|(gone, _)| name.starts_with(gone)) {
        return format!("{name} is gone since Kafka 4: {why}");
    }
    if let Some(broker_name) = topic::broker_names(name).first() {
        return format!(
            "{name} is a setting of topics; for all topics of this broker it is called {}",
            broker_name.name
        );
    }
    match nearest(name) {
        Some((near, _)) => format!("unknown setting {name}; did you mean {near}?"),
        None => format!("unknown setting {name}"),
    }
}

/// Whether a name is so close to a known one that it must be a slip.
pub fn is_slip(name: &str) -> bool {
    nearest(name).is_some_and(|(_, likeness)| likeness >= ALIKE)
}

fn nearest(name: &str) -> Option<(&'static str, f64)> {
    let keys = broker::all().iter().filter(|key| !key.internal);
    keys.map(|key| (key.name, strsim::normalized_damerau_levenshtein(name, key.name)))
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .filter(|(_, likeness)| *likeness >= 0.5)
}

/// Names that are read: those that settings were built from, and those that topics inherit.
pub fn read(used: &BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    let inherited = topic::TOPIC_KEYS.iter().flat_map(|key| topic::broker_names(key.name)).map(|broker| broker.name);
    used.iter().copied().chain(inherited).collect()
}

/// Names that do something: those that are read, and not in vain.
pub fn with_effect(used: &BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    read(used).into_iter().filter(|name| !is_idle(name)).collect()
}

/// One sentence that names what was set in vain.
pub fn without_effect(given: &Given, used: &BTreeSet<&'static str>) -> Option<String> {
    let with_effect = with_effect(used);
    let idle: Vec<&str> = given.names().filter(|name| !with_effect.contains(name)).collect();
    if idle.is_empty() {
        return None;
    }
    Some(format!("these settings are known and checked, but have no effect in this version: {}", idle.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        assert_eq!(unknown("num.partition"), "unknown setting num.partition; did you mean num.partitions?");
        assert_eq!(
            unknown("auto.create.topic.enable"),
            "unknown setting auto.create.topic.enable; did you mean auto.create.topics.enable?"
        );
        assert!(is_slip("log.retention.hour"));
        assert!(!is_slip("service.host"));
    }

    #[test]
    fn old_and_topic_names_are_explained() {
        assert_eq!(unknown("zookeeper.connect"), "zookeeper.connect is gone since Kafka 4: no ZooKeeper is needed");
        assert_eq!(
            unknown("retention.ms"),
            "retention.ms is a setting of topics; for all topics of this broker it is called log.retention.ms"
        );
    }

    #[test]
    fn names_may_carry_a_listener() {
        assert!(is_known("listener.name.internal.ssl.keystore.location"));
        assert!(is_known("num.partitions"));
        assert!(!is_known("listener.name.internal.nothing"));
    }
}
