//! DescribeLogDirs (key 35): how much each replica takes on this broker's disks.
//! v3 adds a top-level error, v4 the volume's space (KIP-827), v5 whether the directory takes new partitions (KIP-1066).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::{Offset, PartitionIndex};
use crate::host::task;
use crate::replica::{self, Partition, Partitions};
use crate::wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use crate::wire::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, StrBytes};

/// A log directory as the replicas on it are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDir {
    /// Absolute.
    pub path: String,
    /// The directory is offline after an error; its replicas are not listed.
    pub offline: bool,
    /// -1 when unknown.
    pub total_bytes: i64,
    /// -1 when unknown.
    pub usable_bytes: i64,
    pub replicas: Vec<ReplicaSize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSize {
    pub topic: std::sync::Arc<str>,
    pub partition: PartitionIndex,
    pub size_bytes: u64,
    /// How far the replica's end is behind the high watermark, 0 for a leader; how far a copy's end is behind the replica's.
    pub offset_lag: Offset,
    /// It is a copy on its way to this directory.
    pub is_future: bool,
}

/// Which replicas a client asks for; everything when it names no topics.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted(Option<BTreeMap<StrBytes, BTreeSet<PartitionIndex>>>);

impl Wanted {
    pub fn of(request: &DescribeLogDirsRequest) -> Wanted {
        Wanted(request.topics.as_ref().map(|topics| {
            let mut wanted: BTreeMap<StrBytes, BTreeSet<PartitionIndex>> = BTreeMap::new();
            for topic in topics {
                wanted.entry(topic.topic.0.clone()).or_default().extend(&topic.partitions);
            }
            wanted
        }))
    }

    pub fn has(&self, topic: &str, partition: PartitionIndex) -> bool {
        let Some(topics) = &self.0 else { return true };
        topics.iter().any(|(name, partitions)| name.as_str() == topic && partitions.contains(&partition))
    }
}

pub async fn handle(
    broker: &Arc<Broker>,
    _context: &RequestContext,
    request: DescribeLogDirsRequest,
) -> Result<DescribeLogDirsResponse, Refused> {
    let partitions = broker.partitions.clone();
    // Asks every log for its size: opens those that nobody used yet.
    let dirs = task::blocking(move || log_dirs(&partitions)).await;
    Ok(answer(dirs, &request))
}

fn log_dirs(partitions: &Partitions) -> Vec<LogDir> {
    let mut replicas: Vec<Vec<ReplicaSize>> = Vec::new();
    replicas.resize_with(partitions.dirs().iter().count(), Vec::new);
    for topic in partitions.topics() {
        for partition in topic.partitions.iter().flatten().filter(|partition| !partition.is_missing()) {
            for (dir, replica) in [Some(current(partition)), future(partition)].into_iter().flatten() {
                if let Some(replicas) = replicas.get_mut(dir) {
                    replicas.push(replica);
                }
            }
        }
    }
    let here = partitions.dirs().iter().zip(replicas);
    let missing = partitions.dirs().missing().iter().map(|path| LogDir::offline(path.display().to_string()));
    here.map(|(dir, replicas)| log_dir(partitions, dir, replicas)).chain(missing).collect()
}

/// With the place of its directory.
fn current(partition: &Partition) -> (usize, ReplicaSize) {
    let name = &partition.identity.topic_partition;
    let view = partition.view();
    let size_bytes = view.as_ref().map_or(0, |view| view.size_bytes());
    // What a follower knows of the leader's log is its high watermark.
    let lag = view.map_or(0, |view| partition.high_watermark().saturating_sub(view.log_end_offset));
    let replica = ReplicaSize {
        topic: name.topic.clone(),
        partition: name.partition,
        size_bytes,
        offset_lag: lag.max(0),
        is_future: false,
    };
    (partition.log_dir().index(), replica)
}

fn future(partition: &Partition) -> Option<(usize, ReplicaSize)> {
    let future = partition.future()?;
    let name = &partition.identity.topic_partition;
    let end = partition.view().map_or(future.log_end_offset, |view| view.log_end_offset);
    let replica = ReplicaSize {
        topic: name.topic.clone(),
        partition: name.partition,
        size_bytes: future.size_bytes,
        offset_lag: end.saturating_sub(future.log_end_offset),
        is_future: true,
    };
    Some((future.dir, replica))
}

fn log_dir(partitions: &Partitions, dir: &replica::LogDir, replicas: Vec<ReplicaSize>) -> LogDir {
    let path = dir.path.display().to_string();
    if dir.health.failure().is_some() {
        return LogDir::offline(path);
    }
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let space = partitions.disk().space(&dir.path).ok();
    LogDir {
        path,
        offline: false,
        total_bytes: space.map_or(-1, |space| bytes(space.total_bytes)),
        usable_bytes: space.map_or(-1, |space| bytes(space.free_bytes)),
        replicas,
    }
}

impl LogDir {
    fn offline(path: String) -> LogDir {
        LogDir { path, offline: true, total_bytes: -1, usable_bytes: -1, replicas: Vec::new() }
    }
}

/// The answer, from what the replica floor knows of its directories.
pub fn answer(dirs: Vec<LogDir>, request: &DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let wanted = Wanted::of(request);
    let results = dirs.into_iter().map(|dir| result(dir, &wanted)).collect();
    DescribeLogDirsResponse { throttle_time_ms: 0, error_code: 0, results }
}

fn result(dir: LogDir, wanted: &Wanted) -> DescribeLogDirsResult {
    let mut topics: BTreeMap<&str, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for replica in dir.replicas.iter().filter(|replica| wanted.has(&replica.topic, replica.partition)) {
        topics.entry(&replica.topic).or_default().push(DescribeLogDirsPartition {
            partition_index: replica.partition,
            partition_size: i64::try_from(replica.size_bytes).unwrap_or(i64::MAX),
            offset_lag: replica.offset_lag,
            is_future_key: replica.is_future,
        });
    }
    let topics = topics.into_iter().map(|(name, mut partitions)| {
        partitions.sort_by_key(|partition| partition.partition_index);
        DescribeLogDirsTopic { name: super::text(name).into(), partitions }
    });
    let error = if dir.offline { crate::base::ErrorCode::KAFKA_STORAGE_ERROR } else { crate::base::ErrorCode::NONE };
    DescribeLogDirsResult {
        error_code: error.code(),
        topics: topics.collect(),
        total_bytes: dir.total_bytes,
        usable_bytes: dir.usable_bytes,
        is_cordoned: false,
        log_dir: StrBytes::from_string(dir.path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::describe_log_dirs_request::DescribableLogDirTopic;

    fn dirs() -> Vec<LogDir> {
        let replica = |topic: &str, partition, size_bytes| ReplicaSize {
            topic: topic.into(),
            partition,
            size_bytes,
            offset_lag: 0,
            is_future: false,
        };
        let replicas = vec![replica("b", 0, 7), replica("a", 1, 70), replica("a", 0, 0)];
        vec![LogDir { path: "/d".into(), offline: false, total_bytes: 10, usable_bytes: 5, replicas }]
    }

    fn sizes(topics: Option<Vec<(&'static str, Vec<i32>)>>) -> Vec<(String, i32, i64)> {
        let topic = |(name, partitions)| {
            DescribableLogDirTopic::default()
                .with_topic(StrBytes::from_static_str(name).into())
                .with_partitions(partitions)
        };
        let topics = topics.map(|topics| topics.into_iter().map(topic).collect());
        let response = answer(dirs(), &DescribeLogDirsRequest::default().with_topics(topics));
        let of_topic = |topic: &DescribeLogDirsTopic| {
            let name = topic.name.to_string();
            let sizes = topic.partitions.iter().map(|one| (name.clone(), one.partition_index, one.partition_size));
            sizes.collect::<Vec<_>>()
        };
        response.results[0].topics.iter().flat_map(of_topic).collect()
    }

    #[test]
    fn null_is_everything_and_empty_is_nothing() {
        assert_eq!(sizes(None), [("a".into(), 0, 0), ("a".into(), 1, 70), ("b".into(), 0, 7)]);
        assert_eq!(sizes(Some(vec![])), []);
        assert_eq!(sizes(Some(vec![("b", vec![])])), []);
    }

    #[test]
    fn unknown_replicas_are_left_out() {
        assert_eq!(sizes(Some(vec![("none", vec![0]), ("a", vec![9, 1])])), [("a".into(), 1, 70)]);
    }
}
