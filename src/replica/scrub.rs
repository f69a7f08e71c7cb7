//! Looking at what lies on the disk: one task reads, slowly and in turn, every log of this node up to where it should be on the device,
//! and compares each batch with its checksum. It changes nothing. What it finds is marked, and `rebuild` sees to it.
//!
//! Consumers' reads are not checked; their clients do that. Without this walk a flipped bit in an old segment would be found by whoever
//! reads it first, perhaps years later and when the other copies are gone.

use std::sync::Arc;
use std::time::Duration;

use super::damage::Confirmed;
use crate::base::MonotonicMs;
use crate::host::{Clock, task};
use crate::log::{Damage, DamageWalk};
use crate::replica::partition::Partition;
use crate::replica::partitions::Partitions;
use crate::replica::role::Role;
use crate::telemetry::Telemetry;

/// The first walk begins when a start has other things behind it.
const FIRST_AFTER_MS: MonotonicMs = 60_000;

/// Bytes read in one go, before the pause that keeps the pace.
const STEP_BYTES: (u64, u64) = (64 << 10, 1 << 20);

#[derive(Clone, Copy, Debug)]
pub struct ScrubOptions {
    /// `log.scrub.bytes.per.second`; 0: never.
    pub bytes_per_second: u64,
    /// `log.scrub.interval.ms`: between the beginnings of two walks over everything.
    pub interval_ms: u64,
}

pub struct Scrubber {
    partitions: Arc<Partitions>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    options: ScrubOptions,
}

impl Scrubber {
    pub fn new(
        partitions: Arc<Partitions>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
        options: ScrubOptions,
    ) -> Scrubber {
        Scrubber { partitions, clock, telemetry, options }
    }

    /// Never ends.
    pub async fn run(self) {
        if self.options.bytes_per_second == 0 {
            return std::future::pending().await;
        }
        let mut next = self.clock.monotonic_ms().saturating_add(self.options.interval_ms.min(FIRST_AFTER_MS));
        loop {
            let now = self.clock.monotonic_ms();
            task::sleep(Duration::from_millis(next.saturating_sub(now))).await;
            next = self.clock.monotonic_ms().saturating_add(self.options.interval_ms);
            self.walk_over_everything().await;
        }
    }

    pub(super) async fn walk_over_everything(&self) {
        let mut topics = self.partitions.topics();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        for partition in topics.iter().flat_map(|topic| topic.partitions.iter().flatten()) {
            if self.partitions.failure().is_some() {
                return;
            }
            self.look_at(partition).await;
        }
    }

    async fn look_at(&self, partition: &Arc<Partition>) {
        let Some((cuts, view, up_to)) = partition.to_scrub() else { return };
        if view.log_start_offset >= up_to {
            return;
        }
        let step_bytes = (self.options.bytes_per_second / 10).clamp(STEP_BYTES.0, STEP_BYTES.1);
        let from = view.log_start_offset;
        let mut walk = DamageWalk::new(partition.disk(), view, from, up_to);
        loop {
            let looked;
            (walk, looked) = task::blocking(move || {
                let looked = walk.step(step_bytes);
                (walk, looked)
            })
            .await;
            let looked = match looked {
                Ok(looked) => looked,
                Err(error) => {
                    tracing::error!(partition = %partition.identity.topic_partition, %error, "cannot look at the log");
                    return partition.note_storage(&error);
                }
            };
            self.telemetry.disk.scrubbed(looked.bytes);
            for damage in &looked.damage {
                self.note_damage(partition, cuts, damage).await;
            }
            if looked.done || partition.is_retired() {
                return;
            }
            task::sleep(self.pause_after(looked.bytes)).await;
        }
    }

    fn pause_after(&self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.options.bytes_per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    async fn note_damage(&self, partition: &Arc<Partition>, cuts: u64, damage: &Damage) {
        let (held, found) = (partition.clone(), damage.clone());
        match task::blocking(move || held.confirm_damage(cuts, &found)).await {
            Ok(Confirmed::No) => {}
            Ok(Confirmed::New | Confirmed::Known) => {
                self.telemetry.disk.damage_found();
                tracing::error!(
                    partition = %partition.identity.topic_partition,
                    offset = damage.offset,
                    file = %damage.path.display(),
                    position = damage.position,
                    reason = damage.reason,
                    "{}",
                    what_is_done(partition)
                );
            }
            Err(error) => partition.note_storage(&error),
        }
    }
}

fn what_is_done(partition: &Partition) -> &'static str {
    match partition.role() {
        _ if partition.replica_count() <= 1 => {
            "a batch on disk is not what was written; there is no other copy, so nothing is changed, and it cannot be read"
        }
        Role::Leader { .. } => {
            "a batch on disk is not what was written; another in-sync replica takes over, and then it is fetched again from there"
        }
        Role::Follower { .. } | Role::Idle { .. } => {
            "a batch on disk is not what was written; the copy leaves the in-sync set, and then it is fetched again from the leader"
        }
    }
}
