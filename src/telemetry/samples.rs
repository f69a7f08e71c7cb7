//! What scrape sources know, as plain values: they fill these in, and names, labels and sums over them are made here.

use std::collections::BTreeMap;

use super::names;
use super::page::Page;
use crate::base::{BrokerId, Offset, PartitionIndex};

/// A replica on this broker.
#[derive(Clone, Copy, Debug)]
pub struct PartitionSample<'a> {
    pub topic: &'a str,
    pub partition: PartitionIndex,
    pub size_bytes: u64,
    pub segments: usize,
    pub log_start_offset: Offset,
    pub log_end_offset: Offset,
    pub high_watermark: Offset,
    /// -1 when the partition has no leader.
    pub leader: BrokerId,
    pub led_here: bool,
    pub leader_is_preferred: bool,
    pub replicas: usize,
    pub in_sync: usize,
    pub min_in_sync: usize,
}

/// A group that this broker coordinates.
#[derive(Clone, Copy, Debug)]
pub struct GroupSample<'a> {
    pub group: &'a str,
    /// Kafka's name of the state: `Stable`, `Empty`, ...
    pub state: &'static str,
    pub members: usize,
}

/// One committed offset, of groups without members too.
#[derive(Clone, Copy, Debug)]
pub struct GroupOffsetSample<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub partition: PartitionIndex,
    pub committed: Offset,
    /// `None` when the partition is not led here: then there is an offset but no lag.
    pub high_watermark: Option<Offset>,
}

/// The cluster as this broker's metadata shows it.
#[derive(Clone, Debug, Default)]
pub struct ClusterSample<'a> {
    /// Id and `host:port` of each broker that is not fenced.
    pub brokers: Vec<(BrokerId, &'a str)>,
    pub fenced_brokers: usize,
    pub is_controller: bool,
    pub topics: usize,
    pub partitions: usize,
    pub partitions_without_leader: usize,
    pub leaders_not_preferred: usize,
    pub metadata_offset: u64,
}

/// How many replicas of a partition are in sync.
#[derive(Clone, Copy, Debug)]
pub struct InSyncSample {
    pub replicas: usize,
    pub in_sync: usize,
    /// `min.insync.replicas`, at most the number of replicas.
    pub min_in_sync: usize,
}

/// One log directory.
#[derive(Clone, Copy, Debug)]
pub struct LogDirSample<'a> {
    pub dir: &'a str,
    pub offline: bool,
    /// Free and total bytes of its file system, where they can be told.
    pub space_bytes: Option<(u64, u64)>,
}

impl Page {
    pub fn partition(&mut self, sample: &PartitionSample<'_>) {
        let number = sample.partition.to_string();
        let labels = [sample.topic, number.as_str()];
        let under_replicated = sample.in_sync < sample.replicas;
        self.add(&names::LOG_SIZE, &labels, sample.size_bytes as f64);
        self.add(&names::LOG_SEGMENTS, &labels, sample.segments as f64);
        self.add(&names::LOG_START_OFFSET, &labels, sample.log_start_offset as f64);
        self.add(&names::LOG_END_OFFSET, &labels, sample.log_end_offset as f64);
        self.add(&names::PARTITION_CURRENT_OFFSET, &labels, sample.high_watermark as f64);
        self.add(&names::PARTITION_OLDEST_OFFSET, &labels, sample.log_start_offset as f64);
        self.add(&names::PARTITION_LEADER, &labels, f64::from(sample.leader));
        self.add(&names::PARTITION_LEADER_IS_PREFERRED, &labels, truth(sample.leader_is_preferred));
        self.add(&names::PARTITION_REPLICAS, &labels, sample.replicas as f64);
        self.add(&names::PARTITION_IN_SYNC, &labels, sample.in_sync as f64);
        self.add(&names::PARTITION_UNDER_REPLICATED, &labels, truth(under_replicated));
        let sums = self.sums.replicas.get_or_insert_default();
        sums.all += 1;
        if sample.led_here {
            sums.count_led(&InSyncSample {
                replicas: sample.replicas,
                in_sync: sample.in_sync,
                min_in_sync: sample.min_in_sync,
            });
        }
    }

    /// A replica on this broker whose log is not open: out of service, or not used yet. It is counted, but there are no offsets to show.
    /// `led`: of one that is led here.
    pub fn partition_without_log(&mut self, led: Option<&InSyncSample>, offline: bool) {
        let sums = self.sums.replicas.get_or_insert_default();
        sums.all += 1;
        sums.offline += u64::from(offline);
        if let Some(sample) = led.filter(|_| !offline) {
            sums.count_led(sample);
        }
    }

    /// Says that there are no replicas here, where no [`Page::partition`] does: a gauge that is 0 is not a gauge that is missing.
    pub fn no_partitions(&mut self) {
        self.sums.replicas.get_or_insert_default();
    }

    /// A topic of the cluster with the number of its partitions.
    pub fn topic(&mut self, topic: &str, partitions: usize) {
        self.add(&names::TOPIC_PARTITIONS, &[topic], partitions as f64);
    }

    pub fn group(&mut self, sample: &GroupSample<'_>) {
        self.add(&names::GROUP_MEMBERS, &[sample.group], sample.members as f64);
        let groups = self.sums.groups.get_or_insert_default();
        *groups.by_state.entry(sample.state).or_default() += 1;
    }

    /// Says that this broker keeps groups, where there may be none yet.
    pub fn no_groups(&mut self) {
        self.sums.groups.get_or_insert_default();
    }

    /// Offsets of one group and topic may come in any order.
    pub fn group_offset(&mut self, sample: &GroupOffsetSample<'_>) {
        let number = sample.partition.to_string();
        let labels = [sample.group, sample.topic, number.as_str()];
        self.add(&names::GROUP_OFFSET, &labels, sample.committed as f64);
        let lag = sample.high_watermark.map(|end| end.saturating_sub(sample.committed).max(0));
        if let Some(lag) = lag {
            self.add(&names::GROUP_LAG, &labels, lag as f64);
        }
        let groups = self.sums.groups.get_or_insert_default();
        groups.offsets += 1;
        let sum = groups.by_topic.entry((sample.group.to_owned(), sample.topic.to_owned())).or_default();
        sum.0 = sum.0.saturating_add(sample.committed);
        sum.1 = sum.1.saturating_add(lag.unwrap_or(0));
    }

    pub fn cluster(&mut self, sample: &ClusterSample<'_>) {
        for (id, address) in &sample.brokers {
            self.add(&names::BROKER_INFO, &[&id.to_string(), address], 1.0);
        }
        for (metric, value) in [
            (&names::BROKERS, sample.brokers.len() as f64),
            (&names::ACTIVE_BROKERS, sample.brokers.len() as f64),
            (&names::FENCED_BROKERS, sample.fenced_brokers as f64),
            (&names::ACTIVE_CONTROLLERS, truth(sample.is_controller)),
            (&names::GLOBAL_TOPICS, sample.topics as f64),
            (&names::GLOBAL_PARTITIONS, sample.partitions as f64),
            (&names::OFFLINE_PARTITIONS, sample.partitions_without_leader as f64),
            (&names::NOT_PREFERRED_LEADERS, sample.leaders_not_preferred as f64),
            (&names::METADATA_OFFSET, sample.metadata_offset as f64),
        ] {
            self.add(metric, &[], value);
        }
    }

    pub fn log_dir(&mut self, sample: &LogDirSample<'_>) {
        self.add(&names::LOG_DIR_OFFLINE, &[sample.dir], truth(sample.offline));
        if let Some((free, total)) = sample.space_bytes {
            self.add(&names::LOG_DIR_FREE, &[sample.dir], free as f64);
            self.add(&names::LOG_DIR_TOTAL, &[sample.dir], total as f64);
        }
        *self.sums.offline_dirs.get_or_insert_default() += u64::from(sample.offline);
    }
}

/// What is added up over samples while a page is made; absent where nobody gave a sample.
#[derive(Default)]
pub(super) struct Sums {
    replicas: Option<Replicas>,
    groups: Option<Groups>,
    offline_dirs: Option<u64>,
}

#[derive(Default)]
struct Replicas {
    all: u64,
    led: u64,
    under_replicated: u64,
    under_min_isr: u64,
    at_min_isr: u64,
    offline: u64,
}

impl Replicas {
    fn count_led(&mut self, sample: &InSyncSample) {
        self.led += 1;
        self.under_replicated += u64::from(sample.in_sync < sample.replicas);
        self.under_min_isr += u64::from(sample.in_sync < sample.min_in_sync);
        self.at_min_isr += u64::from(sample.in_sync == sample.min_in_sync);
    }
}

#[derive(Default)]
struct Groups {
    offsets: u64,
    by_state: BTreeMap<&'static str, u64>,
    /// Committed offsets and lag by group and topic.
    by_topic: BTreeMap<(String, String), (i64, i64)>,
}

impl Sums {
    pub(super) fn write(self, page: &mut Page) {
        if let Some(sums) = self.replicas {
            page.add(&names::PARTITION_COUNT, &[], sums.all as f64);
            page.add(&names::LEADER_COUNT, &[], sums.led as f64);
            page.add(&names::UNDER_REPLICATED, &[], sums.under_replicated as f64);
            page.add(&names::UNDER_MIN_ISR, &[], sums.under_min_isr as f64);
            page.add(&names::AT_MIN_ISR, &[], sums.at_min_isr as f64);
            page.add(&names::OFFLINE_REPLICAS, &[], sums.offline as f64);
        }
        if let Some(groups) = self.groups {
            page.add(&names::GROUPS, &[], groups.by_state.values().sum::<u64>() as f64);
            page.add(&names::GROUP_OFFSETS, &[], groups.offsets as f64);
            for (state, count) in groups.by_state {
                page.add(&names::GROUPS_BY_STATE, &[state], count as f64);
            }
            for ((group, topic), (offsets, lag)) in groups.by_topic {
                page.add(&names::GROUP_OFFSET_SUM, &[&group, &topic], offsets as f64);
                page.add(&names::GROUP_LAG_SUM, &[&group, &topic], lag as f64);
            }
        }
        if let Some(offline) = self.offline_dirs {
            page.add(&names::OFFLINE_LOG_DIRS, &[], offline as f64);
        }
    }
}

fn truth(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_lines(page: Page, lines: &[&str]) {
        let text = page.finish();
        for line in lines {
            assert!(text.lines().any(|have| have == *line), "{line} is missing in\n{text}");
        }
    }

    fn partition(partition: PartitionIndex, in_sync: usize) -> PartitionSample<'static> {
        PartitionSample {
            topic: "t",
            partition,
            size_bytes: 1000,
            segments: 2,
            log_start_offset: 5,
            log_end_offset: 20,
            high_watermark: 18,
            leader: 1,
            led_here: true,
            leader_is_preferred: true,
            replicas: 3,
            in_sync,
            min_in_sync: 2,
        }
    }

    #[test]
    fn partitions_are_listed_and_summed() {
        let mut page = Page::default();
        page.partition(&partition(0, 3));
        page.partition(&partition(1, 2));
        page.partition(&partition(2, 1));
        let behind = InSyncSample { replicas: 3, in_sync: 1, min_in_sync: 2 };
        page.partition_without_log(Some(&behind), true);
        page.partition_without_log(Some(&behind), false);
        page.partition_without_log(None, false);
        let lines = [
            "kafka_log_log_size{topic=\"t\",partition=\"0\"} 1000",
            "kafka_topic_partition_current_offset{topic=\"t\",partition=\"1\"} 18",
            "kafka_topic_partition_oldest_offset{topic=\"t\",partition=\"1\"} 5",
            "kafka_topic_partition_under_replicated_partition{topic=\"t\",partition=\"2\"} 1",
            "kafka_server_replicamanager_partitioncount 6",
            "kafka_server_replicamanager_leadercount 4",
            "kafka_server_replicamanager_offlinereplicacount 1",
            "kafka_server_replicamanager_underreplicatedpartitions 3",
            "kafka_server_replicamanager_underminisrpartitioncount 2",
            "kafka_server_replicamanager_atminisrpartitioncount 1",
        ];
        assert_lines(page, &lines);
    }

    #[test]
    fn lag_is_never_negative_and_is_summed_by_topic() {
        let mut page = Page::default();
        let sample = |partition, committed, high_watermark| GroupOffsetSample {
            group: "g",
            topic: "t",
            partition,
            committed,
            high_watermark,
        };
        page.group(&GroupSample { group: "g", state: "Empty", members: 0 });
        page.group_offset(&sample(0, 10, Some(25)));
        page.group_offset(&sample(1, 30, Some(20)));
        page.group_offset(&sample(2, 1, None));
        let lines = [
            "kafka_consumergroup_members{consumergroup=\"g\"} 0",
            "kafka_consumergroup_lag{consumergroup=\"g\",topic=\"t\",partition=\"0\"} 15",
            "kafka_consumergroup_lag{consumergroup=\"g\",topic=\"t\",partition=\"1\"} 0",
            "kafka_consumergroup_lag_sum{consumergroup=\"g\",topic=\"t\"} 15",
            "kafka_consumergroup_current_offset_sum{consumergroup=\"g\",topic=\"t\"} 41",
            "kafka_coordinator_group_groupmetadatamanager_numoffsets 3",
            "barnabas_groups{state=\"Empty\"} 1",
        ];
        assert_lines(page, &lines);
    }

    #[test]
    fn an_empty_broker_shows_zeros() {
        let mut page = Page::default();
        page.no_partitions();
        page.no_groups();
        let lines =
            ["kafka_server_replicamanager_leadercount 0", "kafka_coordinator_group_groupmetadatamanager_numgroups 0"];
        assert_lines(page, &lines);
    }
}
