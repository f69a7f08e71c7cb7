//! What DescribeConfigs and CreateTopics tell of a resource: each key with its value, where that comes from, and what would count
//! without it.

use super::broker;
use super::client_metrics;
use super::group;
use super::key::{Key, Scope};
use super::layers::{BrokerLayers, ConfigSource, Lookup};
use super::log_config;
use super::topic;
use super::value::{self, Value};
use crate::metadata::ConfigOverrides;

/// One described config.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: String,
    /// `None` for null and for secrets.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub sensitive: bool,
    /// The one that counts first.
    pub synonyms: Vec<EntrySynonym>,
    /// `ConfigType` on the wire; 0 for keys that nobody knows.
    pub kind: i8,
    pub documentation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySynonym {
    pub name: String,
    /// `None` for secrets.
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// Every config of a topic by name.
pub fn topic(overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> Vec<Entry> {
    let shown = topic::TOPIC_KEYS.iter().filter(|key| !key.internal);
    shown.map(|key| topic_entry(key, overrides, below)).collect()
}

fn topic_entry(key: &'static Key, overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> Entry {
    let value = log_config::effective_value(key.name, overrides, below).map(|value| value.to_string());
    let mut synonyms = match topic::broker_names(key.name).first() {
        Some(first) => broker_synonyms(first.name, below),
        None => Vec::new(),
    };
    if overrides.value(key.name).is_some() {
        synonyms.insert(0, synonym(key.name, value.as_deref(), ConfigSource::Topic));
    }
    entry(key, value, synonyms, false)
}

/// The configs of one broker by name: all that Kafka describes, and any other that is in `named` or was set while it runs.
pub fn broker(layers: &BrokerLayers<'_>, dynamic: &[&ConfigOverrides], named: Option<&[String]>) -> Vec<Entry> {
    let is_named = |key: &Key| named.is_some_and(|names| names.iter().any(|name| name == key.name));
    let known = broker::all().iter().filter(|key| !key.internal && (!key.ours || is_named(key)));
    let mut entries: Vec<Entry> = known.map(|key| broker_entry(key, layers)).collect();
    let mut others: Vec<&String> = dynamic.iter().flat_map(|set| set.keys()).collect();
    // Internal ones, the rates of a throttled reassignment among them, are seen once they are set.
    others.retain(|name| broker::find(name).is_none_or(|key| key.internal));
    others.sort_unstable();
    others.dedup();
    entries.extend(others.into_iter().map(|name| other_entry(name, layers)));
    entries
}

fn broker_entry(key: &'static Key, layers: &BrokerLayers<'_>) -> Entry {
    let text = layers.set_value(key.name).or(key.default);
    let value =
        text.map(|text| value::parse(key.kind, text).map_or_else(|_| text.to_owned(), |value| value.to_string()));
    entry(key, value, broker_synonyms(key.name, layers), key.scope == Scope::ReadOnly)
}

/// What is set for all brokers, and nothing else.
pub fn broker_default(set: &ConfigOverrides) -> Vec<Entry> {
    set.iter()
        .map(|(name, text)| {
            let synonyms = vec![synonym(name, Some(text), ConfigSource::BrokerDefault)];
            match broker::find(name) {
                Some(key) => entry(key, Some(text.clone()), synonyms, key.scope == Scope::ReadOnly),
                None => unknown_entry(name, text, ConfigSource::BrokerDefault),
            }
        })
        .collect()
}

fn other_entry(name: &str, layers: &BrokerLayers<'_>) -> Entry {
    let source = if layers.broker.value(name).is_some() { ConfigSource::Broker } else { ConfigSource::BrokerDefault };
    unknown_entry(name, layers.set_value(name).unwrap_or_default(), source)
}

/// A key that only a plugin would know, or one with a listener's name before it.
fn unknown_entry(name: &str, text: &str, source: ConfigSource) -> Entry {
    let found = broker::find_for_listener(name).map(|(key, _)| key);
    let sensitive = broker::is_sensitive(name);
    let value = (!sensitive).then(|| text.to_owned());
    Entry {
        name: name.to_owned(),
        value: value.clone(),
        source,
        read_only: false,
        sensitive,
        synonyms: vec![EntrySynonym { name: name.to_owned(), value, source }],
        kind: found.map_or(0, |key| key.kind.wire_id()),
        documentation: found.map_or("", |key| key.doc),
    }
}

/// Every config of a group by name, set or not.
pub fn group(overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> Vec<Entry> {
    group::GROUP_KEYS.iter().filter(|key| !key.internal).map(|key| group_entry(key, overrides, below)).collect()
}

fn group_entry(key: &'static Key, overrides: &dyn Lookup, below: &BrokerLayers<'_>) -> Entry {
    let value = group::effective_value(key.name, overrides, below).map(|value| value.to_string());
    let mut synonyms = match (group::broker_name(key.name), key.default) {
        (Some(broker_name), _) => broker_synonyms(broker_name, below),
        (None, Some(default)) => vec![synonym(key.name, Some(default), ConfigSource::Default)],
        (None, None) => Vec::new(),
    };
    if let Some(own) = overrides.value(key.name) {
        synonyms.insert(0, synonym(key.name, Some(own), ConfigSource::Group));
    }
    entry(key, value, synonyms, false)
}

/// Every config of a client-metrics subscription by name, set or not.
pub fn client_metrics(overrides: &dyn Lookup) -> Vec<Entry> {
    let keys = client_metrics::CLIENT_METRICS_KEYS.iter();
    keys.map(|key| {
        let (text, source) = match overrides.value(key.name) {
            Some(text) => (Some(text), ConfigSource::ClientMetrics),
            None => (key.default, ConfigSource::Default),
        };
        let value = text.and_then(|text| key.parse(text).ok()).map(|value: Value| value.to_string());
        entry(key, value, text.map(|text| synonym(key.name, Some(text), source)).into_iter().collect(), false)
    })
    .collect()
}

fn entry(key: &'static Key, value: Option<String>, mut synonyms: Vec<EntrySynonym>, read_only: bool) -> Entry {
    let sensitive = key.is_sensitive();
    if sensitive {
        synonyms.iter_mut().for_each(|synonym| synonym.value = None);
    }
    Entry {
        name: key.name.to_owned(),
        value: value.filter(|_| !sensitive),
        source: synonyms.first().map_or(ConfigSource::Default, |first| first.source),
        read_only,
        sensitive,
        synonyms,
        kind: key.kind.wire_id(),
        documentation: key.doc,
    }
}

fn synonym(name: &str, value: Option<&str>, source: ConfigSource) -> EntrySynonym {
    EntrySynonym { name: name.to_owned(), value: value.map(str::to_owned), source }
}

/// Values under a broker key and its synonyms, beginning with the first under its own name: a coarser synonym shows only behind it.
fn broker_synonyms(name: &'static str, layers: &BrokerLayers<'_>) -> Vec<EntrySynonym> {
    let own = [name];
    let names = match broker::synonyms(name) {
        [] => &own[..],
        names => names,
    };
    let found = layers.find_all(names, |name| broker::find(name).and_then(|key| key.default));
    let behind_own = found.into_iter().skip_while(|one| one.name != name);
    behind_own.map(|one| synonym(one.name, Some(one.value), one.source)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::layers::DEFAULTS_ONLY;
    use super::*;

    fn named<'a>(entries: &'a [Entry], name: &str) -> &'a Entry {
        entries.iter().find(|entry| entry.name == name).expect("described")
    }

    fn sources(entry: &Entry) -> Vec<(&str, Option<&str>, i8)> {
        entry.synonyms.iter().map(|one| (one.name.as_str(), one.value.as_deref(), one.source.wire_id())).collect()
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_topic_shows_its_own_value_before_the_brokers() {
        let default = map(&[("min.insync.replicas", "1")]);
        let below = BrokerLayers { broker_default: &default, ..DEFAULTS_ONLY };
        let entries = topic(&map(&[("min.insync.replicas", "1"), ("retention.ms", " 7 ")]), &below);
        assert_eq!(entries.len(), 37);
        let expected = [
            ("min.insync.replicas", Some("1"), 1),
            ("min.insync.replicas", Some("1"), 3),
            ("min.insync.replicas", Some("1"), 5),
        ];
        assert_eq!(sources(named(&entries, "min.insync.replicas")), expected);
        assert_eq!(sources(named(&entries, "retention.ms")), [("retention.ms", Some("7"), 1)]);
        assert_eq!(sources(named(&entries, "segment.bytes")), [("log.segment.bytes", Some("1073741824"), 5)]);
        assert_eq!(named(&entries, "segment.ms").synonyms, []);
    }

    #[test]
    fn coarser_synonyms_show_behind_the_finer_one() {
        let default = map(&[("log.retention.ms", "86400000")]);
        let entries = topic(&(), &BrokerLayers { broker_default: &default, ..DEFAULTS_ONLY });
        let retention = named(&entries, "retention.ms");
        assert_eq!(retention.value.as_deref(), Some("86400000"));
        assert_eq!(
            sources(retention),
            [("log.retention.ms", Some("86400000"), 3), ("log.retention.hours", Some("168"), 5)]
        );
    }

    #[test]
    fn a_broker_shows_kafkas_keys_and_ours_when_named() {
        assert_eq!(broker(&DEFAULTS_ONLY, &[], None).len(), 350);
        let entries = broker(&DEFAULTS_ONLY, &[], Some(&["flush.policy".to_owned()]));
        assert_eq!(named(&entries, "flush.policy").value.as_deref(), Some("sync"));
        assert!(named(&entries, "num.partitions").read_only);
        assert!(!named(&entries, "num.io.threads").read_only);
    }

    #[test]
    fn the_rate_of_a_throttled_reassignment_shows_once_it_is_set() {
        let name = "leader.replication.throttled.rate";
        assert!(broker(&DEFAULTS_ONLY, &[], None).iter().all(|entry| entry.name != name));
        let set = map(&[(name, "1000")]);
        let entries = broker(&BrokerLayers { broker: &set, ..DEFAULTS_ONLY }, &[&set], None);
        assert_eq!(sources(named(&entries, name)), [(name, Some("1000"), 2)]);
    }

    #[test]
    fn secrets_are_named_and_not_shown() {
        let set = map(&[("sasl.jaas.config", "secret"), ("plugin.key", "secret")]);
        let entries = broker(&BrokerLayers { broker: &set, ..DEFAULTS_ONLY }, &[&set], None);
        for name in ["sasl.jaas.config", "plugin.key"] {
            let entry = named(&entries, name);
            assert_eq!((entry.value.as_deref(), entry.sensitive), (None, true));
            assert_eq!(sources(entry), [(name, None, 2)]);
        }
    }

    #[test]
    fn a_group_shows_what_the_broker_would_give() {
        let entries = group(&map(&[("consumer.session.timeout.ms", "50000")]), &DEFAULTS_ONLY);
        assert_eq!(entries.len(), 21);
        let expected = [
            ("consumer.session.timeout.ms", Some("50000"), 8),
            ("group.consumer.session.timeout.ms", Some("45000"), 5),
        ];
        assert_eq!(sources(named(&entries, "consumer.session.timeout.ms")), expected);
        assert_eq!(
            sources(named(&entries, "share.isolation.level")),
            [("share.isolation.level", Some("read_uncommitted"), 5)]
        );
    }
}
