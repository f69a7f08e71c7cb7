//! Settings in the environment, as Kafka's container image takes them: `KAFKA_LOG_RETENTION_MS=5`, where `_` stands for a dot, `__`
//! for an underscore and `___` for a dash; and `CLUSTER_ID`. What an image brings along is called `BARNABAS_DEFAULT_LOG_DIRS` and the like:
//! it stands in for the built-in default, so everything that a user says anywhere goes before it.

use super::names;

/// Variables of Kafka's image and start scripts that are no settings.
const NOT_SETTINGS: &[&str] = &[
    "KAFKA_CLUSTERS_DEFAULTS",
    "KAFKA_DEBUG",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPT",
    "KAFKA_HEAP_OPTS",
    "KAFKA_HOME",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_MODE",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
];

/// What Kubernetes tells every container about a service that is called kafka.
const SERVICE_LINKS: &[&str] = &["KAFKA_PORT", "KAFKA_SERVICE_"];

/// What the names of an image's defaults begin with.
const DEFAULT: &str = "BARNABAS_DEFAULT_";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct FromEnvironment {
    /// Variable, name of the setting, value.
    pub values: Vec<(String, String, String)>,
    /// The same of the image's defaults.
    pub defaults: Vec<(String, String, String)>,
    pub problems: Vec<String>,
    pub warnings: Vec<String>,
}

/// Finds the settings among all variables.
pub fn read(variables: &[(String, String)]) -> FromEnvironment {
    let mut found = FromEnvironment::default();
    let mut variables: Vec<_> = variables.iter().collect();
    variables.sort();
    for (variable, value) in variables {
        if variable == "CLUSTER_ID" {
            found.values.push((variable.clone(), "cluster.id".to_owned(), value.clone()));
        } else if let Some(name) = variable.strip_prefix(DEFAULT).map(dotted) {
            if names::is_known(&name) {
                found.defaults.push((variable.clone(), name, value.clone()));
            } else {
                found.problems.push(format!("{variable}: {}", names::unknown(&name)));
            }
        } else if let Some(name) = setting_name(variable) {
            if names::is_known(&name) {
                found.values.push((variable.clone(), name, value.clone()));
            } else if names::is_slip(&name) || names::unknown(&name).contains("is gone since") {
                found.problems.push(format!("{variable}: {}", names::unknown(&name)));
            } else {
                // Other programs' variables may begin with KAFKA_, too: they must not keep the broker from starting.
                found.warnings.push(format!("{variable} is no setting and is passed over"));
            }
        }
    }
    found
}

fn setting_name(variable: &str) -> Option<String> {
    let name = variable.strip_prefix("KAFKA_").filter(|name| !name.is_empty())?;
    if NOT_SETTINGS.contains(&variable) || SERVICE_LINKS.iter().any(|link| variable.starts_with(link)) {
        return None;
    }
    Some(dotted(name))
}

/// The name of a setting from what a variable has after its prefix.
fn dotted(name: &str) -> String {
    name.to_ascii_lowercase().replace("___", "-").replace("__", "\0").replace('_', ".").replace('\0', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(variable: &str, value: &str) -> FromEnvironment {
        read(&[(variable.to_owned(), value.to_owned())])
    }

    #[test]
    fn variables_become_settings() {
        for (variable, name) in [
            ("KAFKA_NODE_ID", "node.id"),
            ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
            ("KAFKA_LISTENER_NAME_INTERNAL_SSL_KEYSTORE_TYPE", "listener.name.internal.ssl.keystore.type"),
            ("KAFKA_FLUSH_POLICY", "flush.policy"),
            ("CLUSTER_ID", "cluster.id"),
        ] {
            let expected = vec![(variable.to_owned(), name.to_owned(), "1".to_owned())];
            assert_eq!(read_one(variable, "1"), FromEnvironment { values: expected, ..FromEnvironment::default() });
        }
    }

    #[test]
    fn underscores_stand_for_dots_underscores_and_dashes() {
        assert_eq!(setting_name("KAFKA_A_B__C___D").as_deref(), Some("a.b_c-d"));
    }

    #[test]
    fn what_is_no_setting_is_passed_over() {
        for variable in
            ["KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_PORT_9092_TCP_ADDR", "KAFKA_SERVICE_HOST", "PATH", "KAFKA_"]
        {
            assert_eq!(read_one(variable, "x"), FromEnvironment::default(), "{variable}");
        }
        assert_eq!(read_one("KAFKA_UI_COLOUR", "x").warnings, ["KAFKA_UI_COLOUR is no setting and is passed over"]);
    }

    #[test]
    fn an_images_defaults_are_kept_apart_and_must_be_settings() {
        let default = ("BARNABAS_DEFAULT_LOG_DIRS".to_owned(), "log.dirs".to_owned(), "/d".to_owned());
        let expected = FromEnvironment { defaults: vec![default], ..FromEnvironment::default() };
        assert_eq!(read_one("BARNABAS_DEFAULT_LOG_DIRS", "/d"), expected);
        let unknown = read_one("BARNABAS_DEFAULT_LOG_DRIS", "/d").problems;
        assert_eq!(unknown, ["BARNABAS_DEFAULT_LOG_DRIS: unknown setting log.dris; did you mean log.dirs?"]);
    }

    #[test]
    fn slips_and_settings_of_old_are_mistakes() {
        let slip = read_one("KAFKA_NUM_PARTITION", "3");
        assert_eq!(slip.problems, ["KAFKA_NUM_PARTITION: unknown setting num.partition; did you mean num.partitions?"]);
        assert_eq!(read_one("KAFKA_ZOOKEEPER_CONNECT", "x").problems.len(), 1);
    }
}
