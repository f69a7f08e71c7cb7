//! The defaults of a container image. They fill what nobody has set, and give way to what says the same by another name: in a container the
//! built-in `localhost` would be the container alone, and yet a compose file may say less than all.

use super::given::{Given, Origin};
use crate::metadata::config::value::split_list;

/// Adds the defaults (variable, name, value) that still have a meaning beside what was given.
pub fn add_defaults(given: &mut Given, defaults: Vec<(String, String, String)>) {
    let mut missing: Vec<_> = defaults.into_iter().filter(|(_, name, _)| given.value(name).is_none()).collect();
    let is_given = |name: &str| given.value(name).is_some();
    // Clients are told of listeners that are there.
    missing.retain(|(_, name, _)| !(name == "advertised.listeners" && is_given("listeners")));
    missing.retain(|(_, name, _)| !(name == "log.dirs" && is_given("log.dir")));
    if let Some(advertised) = given.value("advertised.listeners").cloned()
        && let Some(at) = missing.iter().position(|(_, name, _)| name == "listeners")
    {
        missing.remove(at);
        given.add(advertised.origin, [("listeners".to_owned(), on_every_address(&advertised.text))]);
    }
    for (variable, name, value) in missing {
        given.add(Origin::Environment(variable), [(name, value)]);
    }
}

/// As in Kafka's image: who is told where to connect, but not where to listen, listens on the same ports, on every address. What is no
/// listener stays as it is, for the one who reads it to complain of.
fn on_every_address(advertised: &str) -> String {
    let listener = |text: &str| {
        let parts = text.split_once("://").and_then(|(name, address)| Some((name, address.rsplit_once(':')?.1)));
        parts.map_or_else(|| text.to_owned(), |(name, port)| format!("{name}://:{port}"))
    };
    split_list(advertised).into_iter().map(|text| listener(&text)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENERS: (&str, &str) = ("listeners", "PLAINTEXT://:9092");
    const ADVERTISED: (&str, &str) = ("advertised.listeners", "PLAINTEXT://localhost:9092");

    /// What counts after a user set `given` and an image `defaults`.
    fn after(given: &[(&str, &str)], defaults: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut all = Given::default();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        all.add(Origin::CommandLine, given.iter().map(owned));
        let variables =
            defaults.iter().map(owned).map(|(name, value)| (format!("BARNABAS_DEFAULT_{name}"), name, value));
        add_defaults(&mut all, variables.collect());
        all.properties().into_iter().collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn defaults_fill_what_nobody_has_set() {
        assert_eq!(after(&[], &[LISTENERS, ADVERTISED]), pairs(&[ADVERTISED, LISTENERS]));
        let set = [("http.listener", "0.0.0.0:1")];
        assert_eq!(after(&set, &[("http.listener", "0.0.0.0:2")]), pairs(&set));
    }

    #[test]
    fn listeners_of_ones_own_are_not_advertised_by_the_image() {
        let own = ("listeners", "INSIDE://:1,OUTSIDE://:2");
        assert_eq!(after(&[own], &[LISTENERS, ADVERTISED]), pairs(&[own]));
    }

    #[test]
    fn who_only_advertises_listens_on_the_same_ports_of_every_address() {
        let own = ("advertised.listeners", "INSIDE://[::1]:1, OUTSIDE://host:2");
        let expected = [own, ("listeners", "INSIDE://:1,OUTSIDE://:2")];
        assert_eq!(after(&[own], &[LISTENERS, ADVERTISED]), pairs(&expected));
        assert_eq!(after(&[own], &[]), pairs(&[own]), "where no image says where to listen, nothing is derived");
    }

    #[test]
    fn one_log_directory_is_not_joined_by_the_images() {
        assert_eq!(after(&[("log.dir", "/mine")], &[("log.dirs", "/image")]), pairs(&[("log.dir", "/mine")]));
    }
}
