//! Which settings do something: the table of those that do not (`config::IDLE`) is held against the code that reads settings. A field
//! counts as read when code outside of `config` and `metadata/config` names it.

use barnabas::config::IDLE;

use super::source::{self, SourceFile};

/// Fields that nothing else reads though their settings do something, and what that is.
const TOLD_OTHERWISE: &[(&str, &str)] = &[
    ("compression_gzip_level", "stands in `compression`"),
    ("compression_lz4_level", "stands in `compression`"),
    ("compression_zstd_level", "stands in `compression`"),
    ("controller_listener_names", "stands in `is_controller` of each listener"),
    ("replication", "what is in it has rows of its own"),
    ("unclean_leader_election_enable", "the controller reads it by its name, topic by topic"),
];

/// Fields of topic configs that no broker setting fills, so that nobody can set them at the start.
const TOPIC_ONLY: &[&str] = &[
    "deadletterqueue_group_enable",
    "follower_throttled_replicas",
    "leader_throttled_replicas",
    "remote_log_copy_disable",
    "remote_log_delete_on_disable",
    "remote_storage_enable",
];

fn readers() -> Vec<SourceFile> {
    let keeps_settings =
        |file: &SourceFile| file.path.starts_with("config/") || file.path.starts_with("metadata/config/");
    source::all().into_iter().filter(|file| !keeps_settings(file)).collect()
}

/// Who reads a field, named with its parent where its own name is too common.
fn reader_of<'a>(readers: &'a [SourceFile], field: &str) -> Option<&'a str> {
    let said = if field.contains('.') { field.to_owned() } else { format!(".{field}") };
    readers.iter().find(|file| file.says_field(&said)).map(|file| file.path.as_str())
}

/// Names of the public fields that a file declares.
fn fields(path: &str) -> Vec<String> {
    let text = source::read(path);
    let field = |line: &str| {
        let (name, kind) = line.strip_prefix("    pub ")?.split_once(": ")?;
        (kind.ends_with(',') && !name.contains(['(', ' '])).then(|| name.to_owned())
    };
    text.lines().filter_map(field).collect()
}

#[test]
fn no_setting_of_the_table_is_read() {
    let readers = readers();
    let read = IDLE.iter().filter_map(|(name, field)| Some(format!("{name}: {}", reader_of(&readers, field)?)));
    let read: Vec<String> = read.collect();
    assert!(read.is_empty(), "these do something now; take them out of config::IDLE:\n  {}", read.join("\n  "));
}

#[test]
fn every_other_setting_is_read() {
    let readers = readers();
    let mut declared = fields("src/config/settings.rs");
    declared.extend(fields("src/config/quorum.rs"));
    declared.extend(fields("src/metadata/config/log_config.rs"));
    assert!(declared.len() > 80, "{}", declared.len());
    let excused = |field: &str| {
        IDLE.iter().any(|(_, idle)| idle.rsplit('.').next() == Some(field))
            || TOLD_OTHERWISE.iter().any(|(told, _)| *told == field)
            || TOPIC_ONLY.contains(&field)
    };
    let lost: Vec<&String> =
        declared.iter().filter(|field| !excused(field) && reader_of(&readers, field).is_none()).collect();
    assert!(lost.is_empty(), "nobody reads {lost:?}: use them, or add their settings to config::IDLE");
}

#[test]
fn every_field_of_the_table_is_declared() {
    let mut declared = fields("src/config/settings.rs");
    declared.extend(fields("src/config/quorum.rs"));
    declared.extend(fields("src/metadata/config/log_config.rs"));
    for (name, field) in IDLE {
        let last = field.rsplit('.').next().unwrap_or_default();
        assert!(declared.iter().any(|one| one == last), "{name}: no field {field}");
    }
}
