//! The group coordinator as the rest of the broker sees it. Requests run on their caller's task; a lock per partition of
//! `__consumer_offsets` is held while a decision is made, appended and replayed, and never across a wait. Replies that must wait are
//! parked; all deadlines are one task's ([`GroupCoordinator::run_timers`]).

mod batch;
mod lifecycle;
mod load;
pub mod log;
mod reload;
mod requests;
mod shard;
mod timers;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;

use self::log::OffsetsLog;
use self::reload::Reloads;
use self::shard::{Active, After, Alarm, Shard, Surroundings};
use self::timers::Timers;
use super::config::GroupConfig;
use super::words::Now;
use crate::base::ids::partition_for_key;
use crate::base::{ErrorCode, Offset, PartitionIndex};
use crate::host::Host;

pub struct GroupCoordinator {
    host: Host,
    log: Arc<dyn OffsetsLog>,
    config: ArcSwap<GroupConfig>,
    /// By partition. Grows, never shrinks.
    shards: ArcSwap<Vec<Arc<Shard>>>,
    timers: Timers,
    loads: AtomicU64,
    reloads: Reloads,
}

impl GroupCoordinator {
    pub fn new(host: Host, log: Arc<dyn OffsetsLog>, config: GroupConfig) -> GroupCoordinator {
        GroupCoordinator {
            host,
            log,
            config: ArcSwap::from_pointee(config),
            shards: ArcSwap::from_pointee(Vec::new()),
            timers: Timers::default(),
            loads: AtomicU64::new(0),
            reloads: Reloads::default(),
        }
    }

    /// Takes over changed settings; what is under way goes on with what it began with.
    pub fn set_config(&self, config: GroupConfig) {
        self.config.store(Arc::new(config));
    }

    /// The partition of `__consumer_offsets` that keeps a group; `None` while the topic does not exist.
    pub fn partition_of(&self, group: &str) -> Option<PartitionIndex> {
        let partitions = self.log.partitions();
        (partitions > 0).then(|| partition_for_key(group, partitions))
    }

    /// Calls `on_group` with each group's name, state and number of members, for metrics.
    pub fn for_each_group(&self, mut on_group: impl FnMut(&str, &'static str, usize)) {
        for shard in self.shards.load().iter() {
            let _ = shard.with(|active| {
                for (name, group) in active.machine.groups() {
                    on_group(name, group.classic().phase().name(), group.classic().member_count());
                }
            });
        }
    }

    /// Calls `on_offset` with group, topic, partition and offset of everything that is committed, for metrics. Groups without members
    /// too.
    pub fn for_each_offset(&self, mut on_offset: impl FnMut(&str, &str, PartitionIndex, Offset)) {
        for shard in self.shards.load().iter() {
            let _ = shard.with(|active| {
                for (name, group) in active.machine.groups() {
                    for (topic, partitions) in group.offsets.topics() {
                        for (partition, committed) in partitions {
                            on_offset(name, topic, *partition, committed.offset);
                        }
                    }
                }
            });
        }
    }

    fn now(&self) -> Now {
        Now { monotonic_ms: self.host.clock.monotonic_ms(), timestamp_ms: self.host.clock.now_ms() }
    }

    /// Does `work` on the machine that keeps `group`, and sets the alarms that come of it.
    fn with_group<T>(
        &self,
        group: &str,
        work: impl FnOnce(&mut Active, &Surroundings<'_>) -> T,
    ) -> Result<T, ErrorCode> {
        let partition = self.partition_of(group).ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE)?;
        self.with_partition(partition, work)
    }

    fn with_partition<T>(
        &self,
        partition: PartitionIndex,
        work: impl FnOnce(&mut Active, &Surroundings<'_>) -> T,
    ) -> Result<T, ErrorCode> {
        let shards = self.shards.load();
        let shard = usize::try_from(partition).ok().and_then(|index| shards.get(index));
        let shard = shard.ok_or(ErrorCode::NOT_COORDINATOR)?;
        let config = self.config.load();
        let around = Surroundings { log: &*self.log, partition, config: &config, now: self.now() };
        let (output, after) = shard.with(|active| work(active, &around))?;
        self.see_to(shard, after);
        Ok(output)
    }

    fn shard(&self, partition: PartitionIndex) -> Option<Arc<Shard>> {
        usize::try_from(partition).ok().and_then(|index| self.shards.load().get(index).cloned())
    }

    fn see_to(&self, shard: &Arc<Shard>, after: After) {
        for Alarm { group, at_ms, instead_of_ms } in after.alarms {
            self.timers.arm(shard.partition, group, at_ms, instead_of_ms);
        }
        if let Some(load) = after.distrusted {
            self.distrust(shard, load);
        }
    }
}

#[cfg(test)]
mod tests;
