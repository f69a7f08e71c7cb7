//! Where a value comes from. A topic's own override comes first, then what was set for this broker, for all brokers, at start, and
//! last the default; a synonym such as `log.retention.hours` counts only where its more precise sisters are not set in any layer.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use super::key::{Key, Kind};
use super::value;
use crate::base::BrokerId;
use crate::metadata::{ConfigResource, Image};

/// Something that knows values by their names.
pub trait Lookup {
    fn value(&self, name: &str) -> Option<&str>;
}

/// Knows nothing.
impl Lookup for () {
    fn value(&self, _: &str) -> Option<&str> {
        None
    }
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Lookup for BTreeMap<K, V> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(AsRef::as_ref)
    }
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Lookup for imbl::OrdMap<K, V> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(AsRef::as_ref)
    }
}

impl<K: Borrow<str> + Hash + Eq, V: AsRef<str>, S: BuildHasher> Lookup for HashMap<K, V, S> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(AsRef::as_ref)
    }
}

impl<T: Lookup + ?Sized> Lookup for Option<&T> {
    fn value(&self, name: &str) -> Option<&str> {
        self.and_then(|inner| inner.value(name))
    }
}

/// Kafka's numbers for the places that a value may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Topic,
    Broker,
    BrokerDefault,
    Static,
    Default,
    BrokerLogger,
    ClientMetrics,
    Group,
}

impl ConfigSource {
    /// The number on the wire (`ConfigSource` of DescribeConfigs).
    pub const fn wire_id(self) -> i8 {
        match self {
            ConfigSource::Topic => 1,
            ConfigSource::Broker => 2,
            ConfigSource::BrokerDefault => 3,
            ConfigSource::Static => 4,
            ConfigSource::Default => 5,
            ConfigSource::BrokerLogger => 6,
            ConfigSource::ClientMetrics => 7,
            ConfigSource::Group => 8,
        }
    }
}

/// A value under the name and in the layer where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synonym<'a> {
    pub name: &'a str,
    pub value: &'a str,
    pub source: ConfigSource,
}

/// The layers below a topic.
#[derive(Clone, Copy)]
pub struct BrokerLayers<'a> {
    /// Set for this broker while it runs.
    pub broker: &'a dyn Lookup,
    /// Set for all brokers while they run.
    pub broker_default: &'a dyn Lookup,
    /// Set at start: file, environment, command line.
    pub fixed: &'a dyn Lookup,
}

/// No broker has anything set.
pub const DEFAULTS_ONLY: BrokerLayers<'static> = BrokerLayers { broker: &(), broker_default: &(), fixed: &() };

impl<'a> BrokerLayers<'a> {
    /// The layers of one broker: what the image has for it and for all, above what it was started with.
    pub fn of(image: &'a Image, broker: BrokerId, fixed: &'a dyn Lookup) -> BrokerLayers<'a> {
        let set = |resource: &ConfigResource| -> &'a dyn Lookup {
            match image.configs(resource) {
                Some(values) => &**values,
                None => &(),
            }
        };
        BrokerLayers {
            broker: set(&ConfigResource::broker(broker)),
            broker_default: set(&ConfigResource::broker_default()),
            fixed,
        }
    }

    /// Every value that stands under one of `names`, the one that counts first: by layer, then in the order of the names.
    pub fn find_all(
        &self,
        names: &[&'static str],
        defaults: impl Fn(&str) -> Option<&'static str>,
    ) -> Vec<Synonym<'a>> {
        let set = [
            (self.broker, ConfigSource::Broker),
            (self.broker_default, ConfigSource::BrokerDefault),
            (self.fixed, ConfigSource::Static),
        ];
        let mut found = Vec::new();
        for (layer, source) in set {
            found.extend(names.iter().filter_map(|name| Some(Synonym { name, value: layer.value(name)?, source })));
        }
        let default =
            |name: &'static str| Some(Synonym { name, value: defaults(name)?, source: ConfigSource::Default });
        found.extend(names.iter().filter_map(|name| default(name)));
        found
    }

    /// What has been set for one broker key under this very name, without its default.
    pub fn set_value(&self, name: &str) -> Option<&'a str> {
        self.broker.value(name).or_else(|| self.broker_default.value(name)).or_else(|| self.fixed.value(name))
    }
}

/// A broker key that fills in for a topic key, and what one unit of it is in units of the topic key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerName {
    pub name: &'static str,
    pub factor: i64,
}

/// The value in the unit of the topic key, as text.
pub fn converted(key: &Key, broker_name: BrokerName, text: &str) -> Option<String> {
    if key.kind != Kind::Long {
        return Some(text.to_owned());
    }
    match value::parse(Kind::Long, text).ok()? {
        // Any negative retention means without end.
        value::Value::Integer(number) if number < 0 && key.name == "retention.ms" => Some("-1".to_owned()),
        value::Value::Integer(number) => Some(number.saturating_mul(broker_name.factor).to_string()),
        _ => None,
    }
}
