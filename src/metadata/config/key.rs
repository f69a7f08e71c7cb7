//! What is known about one setting, and the check of a value against it. The texts of refusals are those that Kafka's tools and
//! their users know.

use super::throttled::ThrottledReplicas;
use super::value::{self, Value};

/// Kafka's types of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

impl Kind {
    /// The number on the wire (`ConfigType` of DescribeConfigs).
    pub const fn wire_id(self) -> i8 {
        match self {
            Kind::Boolean => 1,
            Kind::String => 2,
            Kind::Int => 3,
            Kind::Short => 4,
            Kind::Long => 5,
            Kind::Double => 6,
            Kind::List => 7,
            Kind::Class => 8,
            Kind::Password => 9,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::String => "STRING",
            Kind::Int => "INT",
            Kind::Short => "SHORT",
            Kind::Long => "LONG",
            Kind::Double => "DOUBLE",
            Kind::List => "LIST",
            Kind::Class => "CLASS",
            Kind::Password => "PASSWORD",
        }
    }
}

/// Which values of its type a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Any,
    /// Numbers from here on.
    AtLeast(i64),
    /// Numbers from, up to and including.
    Between(i64, i64),
    /// Fractions from 0 up to and including.
    UpTo(f64),
    /// 1 to 9, or -1 for the codec's own default.
    GzipLevel,
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    NotEmpty,
    NotNull,
    /// A list without gaps and repetitions.
    Distinct,
    /// As `Distinct`, with something in it.
    Some,
    /// As `Distinct`, only of these; may be empty.
    SubsetOf(&'static [&'static str]),
    /// As `SubsetOf`, with something in it.
    SomeOf(&'static [&'static str]),
    /// `*`, or `partition:broker` pairs.
    ThrottledReplicas,
    /// `latest`, `earliest` or `by_duration:` and an ISO 8601 duration.
    OffsetReset,
    /// `host:port` entries.
    Servers,
    /// `id@host:port` entries.
    Voters,
}

/// Who may change a broker setting while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// At start only.
    ReadOnly,
    /// For one broker.
    PerBroker,
    /// For one broker or for all of them.
    ClusterWide,
}

/// One setting.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// As written in a file; `None` is null.
    pub default: Option<&'static str>,
    pub bound: Bound,
    pub scope: Scope,
    /// Not described to clients.
    pub internal: bool,
    /// Barnabas's own, unknown to Kafka.
    pub ours: bool,
    pub doc: &'static str,
}

impl Key {
    /// Whether the value is never shown.
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// The unit that the value is counted in, "" where it has none.
    pub fn unit(&self) -> &'static str {
        if !matches!(self.kind, Kind::Int | Kind::Short | Kind::Long | Kind::Double) {
            return "";
        }
        let last = self.name.rsplit('.').next().unwrap_or_default();
        match last {
            "ms" | "millis" => "ms",
            "hours" => "h",
            "minutes" => "min",
            "seconds" | "secs" => "s",
            "second" | "rate" if self.name.contains("bytes.per") || self.name.contains("throttled") => "bytes/s",
            "rate" => "1/s",
            "bytes" | "size" if !self.name.ends_with(".max.size") && !self.name.ends_with("pool.size") => "bytes",
            _ => "",
        }
    }

    /// Reads a value; surrounding blanks do not matter.
    ///
    /// # Errors
    /// The sentence to show when the text is no value of this type or out of bounds.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let value = value::parse(self.kind, text).map_err(|why| self.refusal(text, &why))?;
        self.check(&value)?;
        Ok(value)
    }

    /// The default, typed; `None` is null.
    pub fn default_value(&self) -> Option<Value> {
        self.default.and_then(|text| value::parse(self.kind, text).ok())
    }

    fn refusal(&self, value: &str, why: &str) -> String {
        format!("Invalid value {value} for configuration {}: {why}", self.name)
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        match value {
            Value::Integer(number) => self.check_integer(*number).map_err(|why| self.refusal(&value.to_string(), &why)),
            Value::Double(number) => self.check_double(*number).map_err(|why| self.refusal(&value.to_string(), &why)),
            Value::Text(text) => self.check_text(text).map_err(|why| self.refusal(text, &why)),
            Value::List(items) => self.check_list(items),
            Value::Boolean(_) => Ok(()),
        }
    }

    fn check_integer(&self, number: i64) -> Result<(), String> {
        match self.bound {
            Bound::AtLeast(min) | Bound::Between(min, _) if number < min => {
                Err(format!("Value must be at least {min}"))
            }
            Bound::Between(_, max) if number > max => Err(format!("Value must be no more than {max}")),
            Bound::GzipLevel if number != -1 && !(1..=9).contains(&number) => {
                Err("Value must be between 1 and 9 or equal to -1".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn check_double(&self, number: f64) -> Result<(), String> {
        match self.bound {
            Bound::UpTo(_) if number < 0.0 || number.is_nan() => Err("Value must be at least 0".to_owned()),
            Bound::UpTo(max) if number > max => Err(format!("Value must be no more than {max}")),
            _ => Ok(()),
        }
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        match self.bound {
            Bound::OneOf(allowed) if !allowed.contains(&text) => {
                Err(format!("String must be one of: {}", allowed.join(", ")))
            }
            Bound::OneOfAnyCase(allowed) if !allowed.iter().any(|one| one.eq_ignore_ascii_case(text)) => {
                Err(format!("String must be one of (case insensitive): {}", allowed.join(", ")))
            }
            Bound::NotEmpty if text.is_empty() => Err("String must be non-empty".to_owned()),
            Bound::OffsetReset => value::check_offset_reset(text),
            _ => Ok(()),
        }
    }

    fn check_list(&self, items: &[String]) -> Result<(), String> {
        match self.bound {
            Bound::ThrottledReplicas => ThrottledReplicas::parse(items).map(drop).ok_or_else(|| {
                let format = "[partitionId]:[brokerId],[partitionId]:[brokerId],...";
                let why = format!("must be the literal '*' or a list of replicas in the following format: {format}");
                self.refusal(&format!("[{}]", items.join(", ")), &format!("{} {why}", self.name))
            }),
            Bound::Servers => items.iter().try_for_each(|item| match value::host_and_port(item) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "Failed to parse host name from {item} for the configuration {}. Each entry should be in the form \
                     \"{{host}}:{{port}}\"",
                    self.name
                )),
            }),
            Bound::Voters => items.iter().try_for_each(|item| match value::voter(item) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "Invalid configuration value for {}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`.",
                    self.name
                )),
            }),
            Bound::Distinct | Bound::Some | Bound::SubsetOf(_) | Bound::SomeOf(_) => self.check_members(items),
            _ => Ok(()),
        }
    }

    fn check_members(&self, items: &[String]) -> Result<(), String> {
        let (allowed, may_be_empty) = match self.bound {
            Bound::Some => (&[][..], false),
            Bound::SubsetOf(allowed) => (allowed, true),
            Bound::SomeOf(allowed) => (allowed, false),
            _ => (&[][..], true),
        };
        if items.is_empty() && !may_be_empty {
            let valid =
                if allowed.is_empty() { "any non-empty value".to_owned() } else { format!("[{}]", allowed.join(", ")) };
            return Err(format!("Configuration '{}' must not be empty. Valid values include: {valid}", self.name));
        }
        if items.iter().enumerate().any(|(at, item)| items.iter().take(at).any(|earlier| earlier == item)) {
            return Err(format!("Configuration '{}' values must not be duplicated.", self.name));
        }
        for item in items {
            if item.is_empty() {
                return Err(format!("Configuration '{}' values must not be empty.", self.name));
            }
            if !allowed.is_empty() && !allowed.contains(&item.as_str()) {
                return Err(self.refusal(item, &format!("String must be one of: {}", allowed.join(", "))));
            }
        }
        Ok(())
    }
}

/// Finds a key in a table that is sorted by name.
pub fn find(table: &'static [Key], name: &str) -> Option<&'static Key> {
    table.binary_search_by(|key| key.name.cmp(name)).ok().and_then(|at| table.get(at))
}

/// Writes a table: name, type, default (or `null`), bound, scope, flags, sentence. Rows are sorted by name.
macro_rules! keys {
    (@default null) => { None };
    (@default $text:literal) => { Some($text) };
    ($($name:literal $kind:ident $default:tt [$($bound:tt)+] $scope:ident $($flag:ident)? : $doc:literal;)*) => {
        &[$($crate::metadata::config::key::Key {
            name: $name,
            kind: $crate::metadata::config::key::Kind::$kind,
            default: $crate::metadata::config::key::keys!(@default $default),
            bound: $crate::metadata::config::key::Bound::$($bound)+,
            scope: $crate::metadata::config::key::Scope::$scope,
            internal: $crate::metadata::config::key::keys!(@internal $($flag)?),
            ours: $crate::metadata::config::key::keys!(@ours $($flag)?),
            doc: $doc,
        },)*]
    };
    (@internal internal) => { true };
    (@internal $($other:ident)?) => { false };
    (@ours ours) => { true };
    (@ours $($other:ident)?) => { false };
}
pub(crate) use keys;

#[cfg(test)]
pub(crate) fn assert_sound(table: &'static [Key]) {
    for pair in table.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
    }
    for key in table {
        if let Some(default) = key.default
            && key.kind != Kind::Class
        {
            let shown = key.parse(default).map(|value| value.to_string());
            assert!(shown.as_deref() == Ok(default) || matches!(key.bound, Bound::NotNull), "{}: {shown:?}", key.name);
        }
        assert!(key.doc.ends_with('.') && key.doc.len() > 15, "{} needs a sentence", key.name);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::metadata::config::{broker, client_metrics, group, topic};

    use super::*;

    fn every_key() -> impl Iterator<Item = &'static Key> {
        let tables = [topic::TOPIC_KEYS, group::GROUP_KEYS, client_metrics::CLIENT_METRICS_KEYS];
        tables.into_iter().flatten().chain(broker::all().iter().copied())
    }

    proptest! {
        /// A value that was taken is taken again in the form in which it is shown, and means the same.
        #[test]
        fn what_is_taken_is_taken_again_as_it_is_shown(text in "[ -~]{0,24}|-?[0-9]{1,20}|(true|FALSE|[a-z]+(,[a-z]+)*)") {
            for key in every_key() {
                if let Ok(value) = key.parse(&text) {
                    prop_assert_eq!(key.parse(&value.to_string()), Ok(value), "{} = {:?}", key.name, &text);
                }
            }
        }

        #[test]
        fn any_text_is_a_value_or_refused(text in "\\PC{0,64}") {
            for key in every_key() {
                let _ = key.parse(&text);
            }
        }
    }

    #[test]
    fn units_follow_from_names() {
        let unit = |name: &str| broker::find(name).map(Key::unit);
        assert_eq!(unit("log.retention.ms"), Some("ms"));
        assert_eq!(unit("log.retention.hours"), Some("h"));
        assert_eq!(unit("offsets.retention.minutes"), Some("min"));
        assert_eq!(unit("leader.imbalance.check.interval.seconds"), Some("s"));
        assert_eq!(unit("message.max.bytes"), Some("bytes"));
        assert_eq!(unit("offsets.load.buffer.size"), Some("bytes"));
        assert_eq!(unit("group.max.size"), Some(""));
        assert_eq!(unit("max.connection.creation.rate"), Some("1/s"));
        assert_eq!(unit("replica.alter.log.dirs.io.max.bytes.per.second"), Some("bytes/s"));
        assert_eq!(unit("auto.create.topics.enable"), Some(""));
    }
}
