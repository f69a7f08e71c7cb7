//! Settings for people to read.

use std::fmt::Write;

use crate::config::{Given, Loaded, Origin, effective_names, unknown_setting};
use crate::metadata::config::{Bound, Key, broker};

/// All settings, those whose name holds `name`, or those that are set. The error names the nearest one where none holds it.
pub fn settings(loaded: &Loaded, name: Option<&str>, changed: bool) -> Result<String, String> {
    let effective = effective_names();
    let mut text = String::new();
    for key in broker::all() {
        let is_set = loaded.given.value(key.name).is_some();
        // Kafka keeps these to itself; whoever set one, or knows its name, wants to see it.
        let is_shown = !key.internal || is_set || name == Some(key.name);
        let wanted = is_shown && name.is_none_or(|part| key.name.contains(part)) && (!changed || is_set);
        if wanted {
            setting(&mut text, key, &loaded.given, effective.contains(key.name));
        }
    }
    for name in loaded.given.names().filter(|given| broker::find(given).is_none()) {
        let Some((key, _)) = broker::find_for_listener(name) else { continue };
        writeln!(text, "{name} = {}\n    As {}, for one listener.", shown(key, name, &loaded.given), key.name).ok();
    }
    match name {
        Some(name) if text.is_empty() && !broker::all().iter().any(|key| key.name.contains(name)) => {
            Err(unknown_setting(name))
        }
        _ if text.is_empty() => Ok("nothing is set\n".to_owned()),
        _ => Ok(text),
    }
}

fn setting(text: &mut String, key: &Key, given: &Given, has_effect: bool) {
    let mut facts = vec![kind(key), format!("default {}", key.default.map_or("not set".to_owned(), quoted))];
    if let Some(value) = given.value(key.name) {
        facts.push(format!("set by {}", value.origin));
    }
    if key.ours {
        facts.push("Barnabas only".to_owned());
    }
    if !has_effect {
        facts.push("no effect in this version".to_owned());
    }
    let value = shown(key, key.name, given);
    writeln!(text, "{} = {value}\n    {}\n    {}", key.name, key.doc, facts.join("; ")).ok();
}

fn shown(key: &Key, name: &str, given: &Given) -> String {
    match given.value(name) {
        Some(_) if key.is_sensitive() => "(hidden)".to_owned(),
        Some(value) => quoted(value.text.trim()),
        None => key.default.map_or("(not set)".to_owned(), quoted),
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { "\"\"".to_owned() } else { text.to_owned() }
}

fn kind(key: &Key) -> String {
    let unit = match key.unit() {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    let bound = match key.bound {
        Bound::Any | Bound::NotNull | Bound::Distinct => String::new(),
        Bound::AtLeast(min) => format!(", at least {min}"),
        Bound::Between(min, max) => format!(", {min} to {max}"),
        Bound::UpTo(max) => format!(", 0 to {max}"),
        Bound::GzipLevel => ", 1 to 9 or -1".to_owned(),
        Bound::OneOf(allowed) | Bound::OneOfAnyCase(allowed) => format!(", one of {}", allowed.join(", ")),
        Bound::NotEmpty | Bound::Some => ", not empty".to_owned(),
        Bound::SubsetOf(allowed) | Bound::SomeOf(allowed) => format!(", of {}", allowed.join(", ")),
        Bound::ThrottledReplicas => ", partition:broker or *".to_owned(),
        Bound::OffsetReset => ", earliest, latest or by_duration:".to_owned(),
        Bound::Servers => ", host:port".to_owned(),
        Bound::Voters => ", id@host:port".to_owned(),
    };
    format!("{}{unit}{bound}", key.kind.name())
}

/// What `check-config` says of good settings.
pub fn verdict(loaded: &Loaded) -> String {
    let count = |test: fn(&Origin) -> bool| {
        let origins = loaded.given.names().filter_map(|name| loaded.given.value(name)).map(|value| &value.origin);
        origins.filter(|origin| test(origin)).count()
    };
    let mut text = format!(
        "the settings are good: {} from the file, {} from the environment, {} from --set\n",
        count(|origin| matches!(origin, Origin::File(_))),
        count(|origin| matches!(origin, Origin::Environment(_))),
        count(|origin| matches!(origin, Origin::CommandLine)),
    );
    for warning in &loaded.warnings {
        writeln!(text, "note: {warning}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};
    use crate::host::sim::SimHost;

    #[test]
    fn the_verdict_names_what_is_set_in_vain() {
        let set = ["num.partitions=3", "log.cleaner.threads=2", "num.io.threads=9"].map(str::to_owned).to_vec();
        let loaded = load(&Sources { set, ..Sources::default() }, &*SimHost::new(1).disk).expect("good settings");
        let verdict = verdict(&loaded);
        let note = "no effect in this version: log.cleaner.threads, num.io.threads\n";
        assert!(verdict.contains("3 from --set\nnote: ") && verdict.ends_with(note), "{verdict}");
        let shown = settings(&loaded, Some("log.cleaner.threads"), false).expect("there is such a setting");
        assert!(shown.contains("no effect in this version"));
    }

    #[test]
    fn what_kafka_keeps_to_itself_is_shown_to_those_who_know_it() {
        let loaded = load(&Sources::default(), &*SimHost::new(1).disk).expect("good settings");
        let shown = |name| settings(&loaded, name, false).expect("there is such a setting");
        let interval = "unclean.leader.election.interval.ms";
        assert!(shown(Some(interval)).contains("in ms, at least 1; default 300000\n"), "{}", shown(Some(interval)));
        assert!(!shown(None).contains(interval));
        let balance = shown(Some("leader.imbalance.check.interval.seconds"));
        assert!(balance.contains("in s, at least 1; default 300\n"), "{balance}");
    }

    #[test]
    fn a_name_that_is_no_setting_gets_the_nearest() {
        let loaded = load(&Sources::default(), &*SimHost::new(1).disk).expect("good settings");
        let problem = settings(&loaded, Some("num.partition.count"), false).expect_err("no setting");
        assert_eq!(problem, "unknown setting num.partition.count; did you mean num.partitions?");
        assert!(settings(&loaded, Some("nothingsuch"), false).is_err_and(|problem| problem.contains("nothingsuch")));
        assert_eq!(settings(&loaded, Some("num.partitions"), true).as_deref(), Ok("nothing is set\n"));
    }
}
