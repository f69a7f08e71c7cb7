//! Settings from all their sources together: who goes before whom, and what is told when something is wrong.

use std::path::PathBuf;

use barnabas::config::{ConfigError, FlushPolicy, Loaded, Origin, Sources, load};
use barnabas::host::Host;

/// Loads a file of this content with variables and assignments.
fn load_all(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Result<Loaded, ConfigError> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config.toml");
    write(&path, file);
    let sources = Sources {
        file: Some(path),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        set: set.iter().map(|one| (*one).to_owned()).collect(),
    };
    load(&sources, &*Host::real().disk)
}

fn write(path: &std::path::Path, content: &str) {
    barnabas::host::disk::write_file_atomically(&*Host::real().disk, path, content.as_bytes()).expect("written");
}

fn problems(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Vec<String> {
    load_all(file, environment, set).expect_err("refused").problems
}

#[test]
fn nothing_at_all_is_a_working_node() {
    let loaded = load_all("", &[], &[]).expect("good");
    let settings = loaded.settings;
    assert_eq!(settings.node_id, 1);
    assert!(settings.roles.broker && settings.roles.controller);
    assert_eq!(settings.listeners.len(), 1);
    assert_eq!(settings.listeners[0].port, 9092);
    assert_eq!(settings.log_dirs, [std::path::absolute("data").expect("a place to stand")]);
    assert_eq!(settings.flush.policy, FlushPolicy::Sync);
    assert_eq!(settings.http_listener, Some(("127.0.0.1".to_owned(), 9644)));
    assert_eq!(settings.topics.partitions_default, 1);
    assert_eq!(settings.internal_topics.consumer_offsets.partitions, 50);
    assert!(loaded.warnings.is_empty());
}

#[test]
fn the_command_line_goes_before_the_environment_before_the_file() {
    let file = "num.partitions = 2\ndefault.replication.factor = 2\ngroup.max.size = 2\n";
    let environment = [("KAFKA_DEFAULT_REPLICATION_FACTOR", "3"), ("KAFKA_GROUP_MAX_SIZE", "3")];
    let loaded = load_all(file, &environment, &["group.max.size=4"]).expect("good");
    assert_eq!(loaded.settings.topics.partitions_default, 2);
    assert_eq!(loaded.settings.topics.replication_factor_default, 3);
    assert_eq!(loaded.settings.groups.size_max, 4);
    let origin = |name: &str| loaded.given.value(name).map(|value| value.origin.clone());
    assert!(matches!(origin("num.partitions"), Some(Origin::File(_))));
    assert_eq!(
        origin("default.replication.factor"),
        Some(Origin::Environment("KAFKA_DEFAULT_REPLICATION_FACTOR".into()))
    );
    assert_eq!(origin("group.max.size"), Some(Origin::CommandLine));
}

#[test]
fn what_an_image_brings_along_goes_before_the_built_in_default_alone() {
    let image =
        [("BARNABAS_DEFAULT_LISTENERS", "PLAINTEXT://:9092"), ("BARNABAS_DEFAULT_HTTP_LISTENER", "0.0.0.0:9644")];
    let alone = load_all("", &image, &[]).expect("good").settings;
    assert_eq!((alone.listeners[0].host.clone(), alone.listeners[0].port), (None, 9092));
    let file = "listeners = \"PLAINTEXT://10.0.0.7:1\"\n";
    let beside_a_file = load_all(file, &image, &[]).expect("good").settings;
    assert_eq!((beside_a_file.listeners[0].host.as_deref(), beside_a_file.listeners[0].port), (Some("10.0.0.7"), 1));
    assert_eq!(beside_a_file.http_listener, Some(("0.0.0.0".to_owned(), 9644)));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let file = "num.partition = 3\nnum.io.threads = 0\n";
    let found = problems(file, &[("KAFKA_LOG_RETENTION_MS", "soon")], &["nonsense", "log.roll.hours=0"]);
    assert_eq!(found.len(), 5, "{found:?}");
    let all = found.join("\n");
    assert!(all.contains("unknown setting num.partition; did you mean num.partitions?"), "{all}");
    assert!(all.contains("Invalid value 0 for configuration num.io.threads: Value must be at least 1"), "{all}");
    assert!(all.contains("environment variable KAFKA_LOG_RETENTION_MS: Invalid value soon"), "{all}");
    assert!(all.contains("--set nonsense: expected key=value"), "{all}");
}

#[test]
fn settings_that_do_nothing_are_named_in_one_line() {
    let loaded = load_all("num.io.threads = 9\nssl.keystore.location = \"/k\"\nlog.retention.hours = 1\n", &[], &[]);
    let warnings = loaded.expect("good").warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].ends_with(": num.io.threads, ssl.keystore.location"), "{warnings:?}");
}

#[test]
fn settings_that_are_read_in_vain_are_named_too() {
    let file = "log.cleaner.enable = false\nlog.flush.interval.messages = 10\nlog.flush.interval.ms = 10\n";
    let warnings = load_all(file, &[], &["queued.max.requests=9"]).expect("good").warnings;
    assert_eq!(warnings.len(), 1);
    let named = ": log.cleaner.enable, queued.max.requests";
    assert!(warnings[0].ends_with(named), "{warnings:?}");
}

#[test]
fn the_usual_container_environment_starts() {
    let environment = [
        ("KAFKA_NODE_ID", "3"),
        ("KAFKA_PROCESS_ROLES", "broker,controller"),
        ("KAFKA_LISTENERS", "PLAINTEXT://:9092,CONTROLLER://:9093"),
        ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://localhost:9092"),
        ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
        ("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"),
        ("KAFKA_CONTROLLER_QUORUM_VOTERS", "3@localhost:9093"),
        ("KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"),
        ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"),
        ("KAFKA_HEAP_OPTS", "-Xmx1g"),
        ("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw"),
        ("PATH", "/bin"),
    ];
    let loaded = load_all("", &environment, &[]).expect("good");
    let settings = loaded.settings;
    assert_eq!((settings.node_id, settings.inter_broker_listener.as_str()), (3, "PLAINTEXT"));
    assert_eq!(settings.cluster_id.as_deref(), Some("4L6g3nShT-eMCtK--X86sw"));
    assert_eq!(settings.advertised_listeners.len(), 1);
    assert!(settings.listeners[1].is_controller);
    assert_eq!(settings.quorum.voters, [(3, barnabas::base::NodeAddress::new("localhost", 9093))]);
    assert_eq!(settings.groups.initial_rebalance_delay_ms, 0);
    assert_eq!(settings.properties.get("node.id").map(String::as_str), Some("3"));
}

#[test]
fn a_missing_file_is_told_when_it_was_named() {
    let sources = Sources { file: Some(PathBuf::from("/nowhere/config.toml")), ..Sources::default() };
    let error = load(&sources, &*Host::real().disk).expect_err("refused");
    assert!(error.to_string().starts_with("/nowhere/config.toml: "), "{error}");
}

#[test]
fn old_and_new_node_ids_agree_or_are_refused() {
    assert_eq!(load_all("broker.id = 7", &[], &[]).expect("good").settings.node_id, 7);
    assert_eq!(problems("broker.id = 7\nnode.id = 8", &[], &[]).len(), 1);
}

#[test]
fn the_file_in_the_repository_is_good_and_shows_the_defaults() {
    let text = include_str!("../config.toml");
    assert_eq!(load_all(text, &[], &[]).expect("good").given.len(), 0);
    let setting =
        |line: &'static str| line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    let uncommented: String = text.lines().filter_map(setting).map(|line| format!("{line}\n")).collect();
    let loaded = load_all(&uncommented, &[], &[]).expect("good");
    assert!(loaded.given.len() > 40, "{}", loaded.given.len());
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let is_example = |name: &str| {
        uncommented.lines().any(|line| line.starts_with(&format!("{name} = ")) && line.ends_with("# example"))
    };
    for name in loaded.given.names().filter(|name| !is_example(name)) {
        let key = barnabas::metadata::config::broker::find(name).expect("known");
        let value = loaded.given.value(name).map(|value| value.text.clone());
        // Where log.dirs is not set, log.dir counts.
        let default = if name == "log.dirs" { Some("./data") } else { key.default };
        assert_eq!(value.as_deref(), default, "{name}");
    }
}

#[test]
fn what_a_start_would_refuse_is_refused_here() {
    for (dirs, why) in
        [("/a,/b,/a", "must not be duplicated"), ("/a/b,/a", "lies in another one"), ("/a,/b,/a/", "named twice")]
    {
        let refused = problems("", &[], &[&format!("log.dirs={dirs}")]);
        assert!(refused[0].contains(why), "{refused:?}");
    }
    assert!(load_all("log.dirs = [\"/a\", \"/b\"]\n", &[], &[]).is_ok());
    for (environment, set) in [(&[("RUST_LOG", "verbose")][..], &[][..]), (&[], &["log.level=verbose"])] {
        let level = problems("", environment, set);
        assert!(level[0].contains("verbose is no level") && level[0].contains("off, error, warn"), "{level:?}");
    }
}

#[test]
fn more_copies_than_brokers_are_warned_of() {
    let loaded = load_all("default.replication.factor = 3\n", &[], &[]).expect("good");
    assert!(
        loaded.warnings[0].starts_with("default.replication.factor is 3, but there is one node"),
        "{:?}",
        loaded.warnings
    );
}
