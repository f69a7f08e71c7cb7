//! Broker settings: Kafka's 350, those that it hides, and ours. The tables are split by subject; [`find`] and [`all`] see them as one.

mod cluster;
mod groups;
mod logs;
mod network;
mod remote_quotas;
mod security;
mod share_streams;
mod transactions;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::key::{Key, Kind, Scope};
use super::layers::BrokerLayers;
use super::value::{self, Value};

static TABLES: [&[Key]; 8] = [
    cluster::KEYS,
    groups::KEYS,
    logs::KEYS,
    network::KEYS,
    remote_quotas::KEYS,
    security::KEYS,
    share_streams::KEYS,
    transactions::KEYS,
];

static SORTED: LazyLock<Vec<&'static Key>> = LazyLock::new(|| {
    let mut keys: Vec<&'static Key> = TABLES.iter().flat_map(|table| table.iter()).collect();
    keys.sort_unstable_by_key(|key| key.name);
    keys
});

/// Settings of the key store and the trust store: while the broker runs they change for one listener only.
const PER_LISTENER_ONLY: &[&str] = &[
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// Listener-wide limits, which may be set for all brokers even with a listener's name before them.
const LISTENER_LIMITS: &[&str] = &["max.connections", "max.connection.creation.rate", "num.network.threads"];

/// Every key by name, hidden ones and ours included.
pub fn all() -> &'static [&'static Key] {
    &SORTED
}

pub fn find(name: &str) -> Option<&'static Key> {
    SORTED.binary_search_by(|key| key.name.cmp(name)).ok().and_then(|at| SORTED.get(at)).copied()
}

/// The key behind a name that may carry a listener (`listener.name.internal.ssl.keystore.location`), and whether it does.
pub fn find_for_listener(name: &str) -> Option<(&'static Key, bool)> {
    if let Some(key) = find(name) {
        return Some((key, false));
    }
    let rest = name.strip_prefix("listener.name.")?;
    let (_, mut rest) = rest.split_once('.')?;
    loop {
        if let Some(key) = find(rest) {
            return Some((key, true));
        }
        // `listener.name.x.plain.sasl.jaas.config` names the SASL mechanism as well.
        rest = rest.split_once('.')?.1;
    }
}

/// The keys whose values count for `name`, the most precise one first; `name` alone for most.
pub fn synonyms(name: &'static str) -> &'static [&'static str] {
    match name {
        "log.flush.interval.ms" => &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"],
        "log.retention.ms" | "log.retention.minutes" | "log.retention.hours" => {
            &["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
        }
        "log.roll.ms" | "log.roll.hours" => &["log.roll.ms", "log.roll.hours"],
        "log.roll.jitter.ms" | "log.roll.jitter.hours" => &["log.roll.jitter.ms", "log.roll.jitter.hours"],
        _ => &[],
    }
}

/// The value of a broker key as it counts; `None` when it is null or cannot be read.
pub fn effective_value(name: &str, layers: &BrokerLayers<'_>) -> Option<Value> {
    let key = find(name)?;
    match layers.set_value(name) {
        Some(text) => value::parse(key.kind, text).ok(),
        None => key.default_value(),
    }
}

/// As [`effective_value`], for whole numbers.
pub fn effective_integer(name: &str, layers: &BrokerLayers<'_>) -> Option<i64> {
    match effective_value(name, layers)? {
        Value::Integer(number) => Some(number),
        _ => None,
    }
}

/// Whether a value of this key must never be shown. Keys that nobody knows may hold secrets.
pub fn is_sensitive(name: &str) -> bool {
    find_for_listener(name).is_none_or(|(key, _)| key.kind == Kind::Password)
}

/// Checks what is to be set on one broker, or with `for_all` on all of them, while they run. Unknown keys pass, as in Kafka: they
/// may belong to a plugin.
///
/// # Errors
/// The sentence to answer with INVALID_REQUEST.
pub fn validate_dynamic(overrides: &BTreeMap<String, String>, for_all: bool) -> Result<(), String> {
    let matching = |test: fn(&Key, &str, bool) -> bool| {
        let known = overrides.keys().filter_map(|name| Some((name, find_for_listener(name)?)));
        let names: Vec<&str> =
            known.filter(|(name, (key, listener))| test(key, name, *listener)).map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let read_only = matching(|key, _, listener| key.scope == Scope::ReadOnly && !listener);
    if !read_only.is_empty() {
        return Err(format!("Cannot update these configs dynamically: [{read_only}]"));
    }
    let unprefixed = matching(|key, name, _| key.name == name && PER_LISTENER_ONLY.contains(&key.name));
    if !unprefixed.is_empty() {
        return Err(format!(
            "These security configs can be dynamically updated only per-listener using the listener prefix: [{unprefixed}]"
        ));
    }
    for (name, value) in overrides {
        if let Some((key, _)) = find_for_listener(name) {
            key.parse(value)?;
        }
    }
    let one_only = matching(|key, _, listener| {
        key.scope == Scope::PerBroker || (listener && !LISTENER_LIMITS.contains(&key.name))
    });
    if for_all && !one_only.is_empty() {
        return Err(format!(
            "Cannot update these configs at default cluster level, broker id must be specified: [{one_only}]"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::key;
    use super::super::layers::DEFAULTS_ONLY;
    use super::*;

    fn validate(pairs: &[(&str, &str)], for_all: bool) -> Result<(), String> {
        let overrides = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        validate_dynamic(&overrides, for_all)
    }

    #[test]
    fn the_tables_are_sound_and_complete() {
        TABLES.iter().for_each(|table| key::assert_sound(table));
        assert!(all().windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(all().iter().filter(|key| !key.internal && !key.ours).count(), 350);
    }

    #[test]
    fn defaults_are_typed() {
        assert_eq!(effective_integer("num.io.threads", &DEFAULTS_ONLY), Some(8));
        assert_eq!(effective_value("log.retention.ms", &DEFAULTS_ONLY), None);
        let fixed = BTreeMap::from([("num.io.threads", "3")]);
        assert_eq!(effective_integer("num.io.threads", &BrokerLayers { fixed: &fixed, ..DEFAULTS_ONLY }), Some(3));
    }

    #[test]
    fn what_is_fixed_at_start_stays() {
        assert_eq!(
            validate(&[("num.partitions", "0"), ("node.id", "x")], false),
            Err("Cannot update these configs dynamically: [node.id, num.partitions]".to_owned())
        );
    }

    #[test]
    fn settings_of_one_broker_are_not_for_all() {
        assert_eq!(
            validate(&[("listeners", "PLAINTEXT://:1")], true),
            Err("Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
                .to_owned())
        );
        assert_eq!(validate(&[("listeners", "PLAINTEXT://:1")], false), Ok(()));
        assert!(validate(&[("listener.name.x.ssl.keystore.type", "PEM")], true).is_err());
        assert_eq!(validate(&[("listener.name.x.max.connections", "5")], true), Ok(()));
    }

    #[test]
    fn key_stores_change_per_listener() {
        assert!(validate(&[("ssl.keystore.location", "x")], false).is_err_and(|why| why.contains("only per-listener")));
        assert_eq!(validate(&[("listener.name.plaintext.ssl.keystore.type", "PEM")], false), Ok(()));
    }

    #[test]
    fn unknown_keys_pass_and_stay_secret() {
        assert_eq!(validate(&[("no.such.key", "1")], false), Ok(()));
        assert!(is_sensitive("no.such.key"));
        assert!(is_sensitive("ssl.key.password"));
        assert!(is_sensitive("listener.name.x.plain.sasl.jaas.config"));
        assert!(!is_sensitive("num.io.threads"));
    }
}
