//! Taking partitions of `__consumer_offsets` over and giving them up, and what happens by itself: deadlines, expiry of offsets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{debug, error, info, trace, warn};

use super::log::AppendRefused;
use super::shard::{After, Shard, Surroundings};
use super::{GroupCoordinator, load};
use crate::base::{ErrorCode, MonotonicMs, PartitionIndex, TopicId};
use crate::coordinator::group::admin::Deletions;
use crate::host::task;

impl GroupCoordinator {
    /// This broker leads the partition now: reads it, and serves its groups from then on. Until then they are answered
    /// COORDINATOR_LOAD_IN_PROGRESS.
    pub async fn load(self: Arc<Self>, partition: PartitionIndex) {
        if let Some((shard, number)) = self.begin_load(partition) {
            self.finish_load(shard, number).await;
        }
    }

    /// The same for all partitions that `__consumer_offsets` has and that are not served yet. Quick where there is nothing to read.
    pub async fn load_all(self: Arc<Self>) {
        let begun: Vec<(Arc<Shard>, u64)> = (0..self.log.partitions())
            .filter(|partition| self.serves(*partition) == Err(ErrorCode::NOT_COORDINATOR))
            .filter_map(|partition| self.begin_load(partition))
            .collect();
        for (shard, number) in begun {
            self.finish_load(shard, number).await;
        }
    }

    /// Another broker leads the partition now, or nobody: whoever waits here is told NOT_COORDINATOR.
    pub fn unload(&self, partition: PartitionIndex) {
        if let Some(shard) = self.shard(partition) {
            shard.unload();
        }
    }

    /// Whether the partition's groups can be asked for.
    pub fn serves(&self, partition: PartitionIndex) -> Result<(), ErrorCode> {
        self.with_partition(partition, |_, _| ())
    }

    /// Topics are gone, and their offsets with them.
    pub fn topics_deleted(&self, topics: &[(Arc<str>, TopicId)]) {
        self.delete_everywhere("offsets of deleted topics", |active| active.decide_topics_deleted(topics));
    }

    /// Wakes groups when something is due, reads again what the log may have lost, and expires offsets from time to time. One task,
    /// spawned by the server, never ends.
    pub async fn run_timers(self: Arc<Self>) {
        let mut next_expiry_ms = self.now().monotonic_ms + self.config.load().retention_check_interval_ms;
        loop {
            self.reload_distrusted().await;
            self.tick_due_groups();
            let now_ms = self.now().monotonic_ms;
            if now_ms >= next_expiry_ms {
                let groups = self.clone();
                task::blocking(move || groups.expire()).await;
                next_expiry_ms = now_ms + self.config.load().retention_check_interval_ms.max(1);
            }
            let wake_ms: MonotonicMs = self.timers.earliest_ms().map_or(next_expiry_ms, |at| at.min(next_expiry_ms));
            tokio::select! {
                () = task::sleep(Duration::from_millis(wake_ms.saturating_sub(now_ms))) => {}
                () = self.timers.earlier_set() => {}
                () = self.reloads.asked() => {}
            }
        }
    }

    pub(super) fn tick_due_groups(&self) {
        let now_ms = self.now().monotonic_ms;
        while let Some((partition, group)) = self.timers.pop_due(now_ms) {
            // Not served any more: then its new coordinator keeps its deadlines.
            let _ = self.with_partition(partition, |active, around| active.tick(&group, around));
        }
    }

    /// `offsets.retention.minutes`. Looks at every offset and writes to disk: not for a thread that must not wait.
    pub fn expire(&self) {
        let config = self.config.load_full();
        let now = self.now();
        self.delete_everywhere("expired offsets and groups", |machine| machine.decide_expiry(now, &config));
    }

    fn delete_everywhere(
        &self,
        what: &str,
        decide: impl Fn(&crate::coordinator::group::machine::Machine) -> Deletions,
    ) {
        let partitions = self.shards.load().len() as PartitionIndex;
        for partition in 0..partitions {
            let deleted = self.with_partition(partition, |active, around| {
                let deletions = decide(&active.machine);
                active.delete(&deletions, around).map(|_| (deletions.offsets.len(), deletions.groups.len()))
            });
            match deleted {
                Ok(Ok((0, 0))) | Err(_) => {}
                Ok(Ok((offsets, groups))) => info!(partition, offsets, groups, "deleted {what}"),
                Ok(Err(AppendRefused::NotLeader)) => debug!(partition, "no longer led here; {what} stay"),
                Ok(Err(refused)) => warn!(partition, %refused, "{what} stay for now"),
            }
        }
    }

    pub(super) fn begin_load(&self, partition: PartitionIndex) -> Option<(Arc<Shard>, u64)> {
        let index = usize::try_from(partition).ok()?;
        self.shards.rcu(|shards| {
            let mut grown = Vec::clone(shards);
            while grown.len() <= index {
                grown.push(Arc::new(Shard::new(grown.len() as PartitionIndex)));
            }
            grown
        });
        let shard = self.shards.load().get(index)?.clone();
        let number = self.loads.fetch_add(1, Ordering::Relaxed);
        shard.begin_load(number);
        Some((shard, number))
    }

    pub(super) async fn finish_load(&self, shard: Arc<Shard>, number: u64) {
        let partition = shard.partition;
        let log = self.log.clone();
        let begun_ms = self.now().monotonic_ms;
        match task::blocking(move || load::load(&*log, partition)).await {
            Ok(loaded) => {
                let (groups, records) = (loaded.machine.groups().count(), loaded.records);
                let config = self.config.load();
                let around = Surroundings { log: &*self.log, partition, config: &config, now: self.now() };
                let Some(after) = shard.finish_load(number, loaded.machine, &around) else { return };
                // A machine that comes straight from the log knows nothing that the log does not, whatever was refused since.
                self.see_to(&shard, After { distrusted: None, ..after });
                let took_ms = self.now().monotonic_ms.saturating_sub(begun_ms);
                // At a first start there are fifty of these, and none says anything.
                if records == 0 {
                    trace!(partition, took_ms, "groups loaded");
                } else {
                    debug!(partition, groups, records, took_ms, "groups loaded");
                }
            }
            Err(failed) => {
                error!(partition, %failed, "__consumer_offsets cannot be read; its groups are not served");
                shard.abandon_load(number);
            }
        }
    }
}
