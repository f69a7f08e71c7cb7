//! The small files beside the partition directories of a log directory, in Kafka's formats: offset checkpoints, the mark of a
//! clean shutdown, and `meta.properties`. Each is replaced whole or not at all.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::checkpoint_text::Lines;
use super::error::{Context, LogError};
use crate::base::{BrokerId, Offset, TopicPartition};
use crate::host::Disk;
use crate::host::disk::{read_file, write_file_atomically};

pub const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
pub const LOG_START_OFFSETS: &str = "log-start-offset-checkpoint";
pub const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
pub const CLEANER_OFFSETS: &str = "cleaner-offset-checkpoint";
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
pub const META_PROPERTIES: &str = "meta.properties";

pub type Offsets = BTreeMap<TopicPartition, Offset>;

/// Reads the checkpoint called `name` in `log_dir`. A missing or damaged one is empty: recovery then checks more, never less.
/// The reason of the damage comes back for the log line.
pub fn read_offsets(disk: &dyn Disk, log_dir: &Path, name: &str) -> Result<(Offsets, Option<String>), LogError> {
    let path = log_dir.join(name);
    let text = match read_file(disk, &path) {
        Ok(content) => String::from_utf8_lossy(&content).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Offsets::new(), None)),
        Err(error) => return Err(error).context("read", &path),
    };
    match parse_offsets(&text) {
        Ok(offsets) => Ok((offsets, None)),
        Err(reason) => Ok((Offsets::new(), Some(format!("{}: {reason}", path.display())))),
    }
}

fn parse_offsets(text: &str) -> Result<Offsets, super::checkpoint_text::TextError> {
    let mut offsets = Offsets::new();
    for line in Lines::parse(text)? {
        let [topic, partition, offset] = line.fields()?;
        offsets.insert(TopicPartition::new(topic, line.number(partition)?), line.number(offset)?);
    }
    Ok(offsets)
}

/// Replaces the checkpoint called `name` in `log_dir`; on return it is durable.
pub fn write_offsets<'a>(
    disk: &dyn Disk,
    log_dir: &Path,
    name: &str,
    offsets: impl ExactSizeIterator<Item = (&'a TopicPartition, Offset)>,
) -> Result<(), LogError> {
    let mut text = format!("0\n{}\n", offsets.len());
    for (partition, offset) in offsets {
        text.push_str(&format!("{} {} {offset}\n", partition.topic, partition.partition));
    }
    let path = log_dir.join(name);
    write_file_atomically(disk, &path, text.as_bytes()).context("write", &path)
}

/// Takes the mark of a clean shutdown away, durably, and answers whether it was there. From then on a crash is a crash.
pub fn take_clean_shutdown(disk: &dyn Disk, log_dir: &Path) -> Result<bool, LogError> {
    let path = log_dir.join(CLEAN_SHUTDOWN);
    match disk.remove_file(&path) {
        Ok(()) => disk.sync_dir(log_dir).context("sync", log_dir).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).context("remove", &path),
    }
}

/// The broker epoch that the mark of a clean shutdown tells of, while it is there.
pub fn clean_shutdown_epoch(disk: &dyn Disk, log_dir: &Path) -> Option<i64> {
    let content = read_file(disk, &log_dir.join(CLEAN_SHUTDOWN)).ok()?;
    let text = String::from_utf8(content).ok()?;
    let (_, epoch) = text.split_once("\"brokerEpoch\":")?;
    epoch.trim_end().trim_end_matches('}').trim().parse().ok()
}

/// Marks the directory as cleanly shut down: all logs are closed and all checkpoints written.
pub fn mark_clean_shutdown(disk: &dyn Disk, log_dir: &Path, broker_epoch: i64) -> Result<(), LogError> {
    let path = log_dir.join(CLEAN_SHUTDOWN);
    let text = format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}");
    write_file_atomically(disk, &path, text.as_bytes()).context("write", &path)
}

/// What `meta.properties` (version 1) says of a log directory. Ids are Kafka's 22-character texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    pub cluster_id: String,
    pub node_id: BrokerId,
    pub directory_id: Option<String>,
}

impl MetaProperties {
    /// `None` when the directory has no such file yet.
    pub fn read(disk: &dyn Disk, log_dir: &Path) -> Result<Option<MetaProperties>, LogError> {
        let path = log_dir.join(META_PROPERTIES);
        let content = match read_file(disk, &path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("read", &path),
        };
        let parsed = Self::parse(&String::from_utf8_lossy(&content));
        parsed.map(Some).map_err(|reason| LogError::Text { path, reason })
    }

    /// Version 0 files call the node `broker.id`.
    fn parse(text: &str) -> Result<MetaProperties, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let properties: BTreeMap<&str, &str> =
            lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim())).collect();
        let node = properties.get("node.id").or_else(|| properties.get("broker.id")).ok_or("no node.id")?;
        Ok(MetaProperties {
            cluster_id: properties.get("cluster.id").ok_or("no cluster.id")?.to_string(),
            node_id: node.parse().map_err(|_| format!("node.id {node:?} is no number"))?,
            directory_id: properties.get("directory.id").map(|id| id.to_string()),
        })
    }

    pub fn write(&self, disk: &dyn Disk, log_dir: &Path) -> Result<(), LogError> {
        let mut text = format!("version=1\ncluster.id={}\nnode.id={}\n", self.cluster_id, self.node_id);
        if let Some(id) = &self.directory_id {
            text.push_str(&format!("directory.id={id}\n"));
        }
        let path = log_dir.join(META_PROPERTIES);
        write_file_atomically(disk, &path, text.as_bytes()).context("write", &path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::OpenMode;
    use crate::host::sim::{Crash, SimDisk};

    const DIR: &str = "/data";

    fn disk() -> SimDisk {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new(DIR)).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk
    }

    fn write(disk: &SimDisk, name: &str, text: &str) {
        let file = disk.open(&Path::new(DIR).join(name), OpenMode::Truncate).unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
    }

    fn offsets(disk: &SimDisk) -> Offsets {
        read_offsets(disk, Path::new(DIR), RECOVERY_POINTS).unwrap().0
    }

    #[test]
    fn offsets_round_trip_in_kafkas_text_and_are_durable() {
        let disk = disk();
        assert_eq!(offsets(&disk), Offsets::new());
        let all: Offsets = [(TopicPartition::new("a-b", 3), 7), (TopicPartition::new("a", 12), 1 << 40)].into();
        write_offsets(&disk, Path::new(DIR), RECOVERY_POINTS, all.iter().map(|(tp, offset)| (tp, *offset))).unwrap();
        disk.crash(Crash::PowerLosesAll);
        let text = disk.content(&Path::new(DIR).join(RECOVERY_POINTS)).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "0\n2\na 12 1099511627776\na-b 3 7\n");
        assert_eq!(offsets(&disk), all);
    }

    #[test]
    fn a_damaged_checkpoint_is_empty_and_says_why() {
        let disk = disk();
        for text in ["", "0\n1\n", "0\n1\na b 3\n", "9\n0\n", "0\n1\na 1 99999999999999999999\n"] {
            write(&disk, RECOVERY_POINTS, text);
            let (offsets, reason) = read_offsets(&disk, Path::new(DIR), RECOVERY_POINTS).unwrap();
            assert!(offsets.is_empty() && reason.is_some(), "{text:?}");
        }
    }

    #[test]
    fn a_replaced_checkpoint_is_the_old_or_the_new_one_whenever_the_power_goes() {
        let partition = TopicPartition::new("t", 0);
        for how in [Crash::PowerLosesAll, Crash::PowerLosesSome, Crash::Process] {
            for cut in 1..=6 {
                let disk = disk();
                let write =
                    |offset| write_offsets(&disk, Path::new(DIR), RECOVERY_POINTS, [(&partition, offset)].into_iter());
                write(1).unwrap();
                disk.cut_power_at(cut);
                let done = write(2).is_ok();
                disk.crash(how);
                let found = offsets(&disk)[&partition];
                assert!(found == 2 || (found == 1 && !done), "{how:?} at {cut}: {found}");
            }
        }
    }

    #[test]
    fn the_mark_of_a_clean_shutdown_is_taken_once() {
        let disk = disk();
        let dir = Path::new(DIR);
        assert!(!take_clean_shutdown(&disk, dir).unwrap());
        mark_clean_shutdown(&disk, dir, 17).unwrap();
        assert_eq!(disk.content(&dir.join(CLEAN_SHUTDOWN)).unwrap(), br#"{"version":0,"brokerEpoch":17}"#);
        assert_eq!(clean_shutdown_epoch(&disk, dir), Some(17));
        assert!(take_clean_shutdown(&disk, dir).unwrap());
        assert_eq!(clean_shutdown_epoch(&disk, dir), None);
        disk.crash(Crash::PowerLosesAll);
        assert!(!take_clean_shutdown(&disk, dir).unwrap());
    }

    #[test]
    fn meta_properties_round_trip_and_kafkas_are_read() {
        let disk = disk();
        let dir = Path::new(DIR);
        assert_eq!(MetaProperties::read(&disk, dir).unwrap(), None);
        let ours = MetaProperties { cluster_id: "abc".into(), node_id: 1, directory_id: Some("def".into()) };
        ours.write(&disk, dir).unwrap();
        assert_eq!(MetaProperties::read(&disk, dir).unwrap(), Some(ours.clone()));
        write(&disk, META_PROPERTIES, "#\n#Sun Nov 29\nnode.id=1\ndirectory.id=def\nversion=1\ncluster.id=abc\n");
        assert_eq!(MetaProperties::read(&disk, dir).unwrap(), Some(ours));
        write(&disk, META_PROPERTIES, "version=0\nbroker.id=4\ncluster.id=abc\n");
        let old = MetaProperties { cluster_id: "abc".into(), node_id: 4, directory_id: None };
        assert_eq!(MetaProperties::read(&disk, dir).unwrap(), Some(old));
        for text in ["", "node.id=1\n", "cluster.id=a\nnode.id=x\n"] {
            write(&disk, META_PROPERTIES, text);
            assert!(matches!(MetaProperties::read(&disk, dir), Err(LogError::Text { .. })), "{text:?}");
        }
    }
}
