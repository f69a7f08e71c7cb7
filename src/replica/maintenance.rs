//! The housekeeper of a log directory: one thread that opens logs after start, syncs what nobody waits for, rolls and retains, writes
//! checkpoints (by time, and by bytes: see [`super::tail`]), and removes what deleted topics left. It looks at all partitions in turn; none has a timer of its own.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use crate::base::MonotonicMs;
use crate::host::task::{self, Worker};
use crate::host::{Clock, Workers};
use crate::replica::lanes::Flusher;
use crate::replica::log_dirs::LogDir;
use crate::replica::partition::Partition;
use crate::replica::partitions::Partitions;
use crate::replica::tail::TailBound;
use crate::telemetry::Telemetry;

/// How often the housekeeper looks whether something is due.
const TICK: Duration = Duration::from_millis(500);

/// When what has to happen: in milliseconds between two times, unless it says otherwise. `u64::MAX` is never.
#[derive(Clone, Copy, Debug)]
pub struct MaintenanceIntervals {
    /// Unless the policy is `os`: what was appended and not synced is synced after this long at the latest.
    pub flush_ms: u64,
    /// `log.flush.offset.checkpoint.interval.ms`
    pub checkpoint_ms: u64,
    /// `replica.high.watermark.checkpoint.interval.ms`
    pub high_watermark_ms: u64,
    /// `log.retention.check.interval.ms`
    pub retention_ms: u64,
    /// `producer.id.expiration.check.interval.ms`
    pub producer_check_ms: u64,
    /// `producer.id.expiration.ms`
    pub producer_expiration_ms: i64,
    /// Bytes: a checkpoint is written early when a recovery would have to read more.
    pub tail_bytes_max: u64,
}

/// Due again `interval` after it was last due.
struct Due {
    interval: u64,
    next: MonotonicMs,
}

impl Due {
    fn new(interval: u64, now: MonotonicMs) -> Due {
        Due { interval, next: now.saturating_add(interval) }
    }

    fn is_now(&mut self, now: MonotonicMs) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now.saturating_add(self.interval);
        }
        due
    }
}

pub struct Maintenance {
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
    intervals: MaintenanceIntervals,
    stop: Mutex<bool>,
    stopped: Condvar,
    /// The same bell for a housekeeper that runs as a task.
    stopped_task: Notify,
}

/// What the housekeeper remembers between two rounds.
struct Rounds {
    flush: Due,
    checkpoint: Due,
    high_watermark: Due,
    retention: Due,
    producers: Due,
    tail: TailBound,
    /// Until the next round.
    pause: Duration,
}

impl Maintenance {
    /// Starts the housekeeper, as a thread or as a task.
    pub fn start(
        workers: Workers,
        partitions: Arc<Partitions>,
        flusher: Arc<Flusher>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
        intervals: MaintenanceIntervals,
    ) -> std::io::Result<(Arc<Maintenance>, Worker)> {
        let maintenance = Arc::new(Maintenance {
            partitions,
            flusher,
            clock,
            telemetry,
            intervals,
            stop: Mutex::new(false),
            stopped: Condvar::new(),
            stopped_task: Notify::new(),
        });
        let (as_thread, as_task) = (maintenance.clone(), maintenance.clone());
        let worker = workers.start_blocking(
            "maintenance",
            move || as_thread.run(),
            move || async move { as_task.run_as_task().await },
        )?;
        Ok((maintenance, worker))
    }

    pub fn stop(&self) {
        *self.stop.lock() = true;
        self.stopped.notify_all();
        self.stopped_task.notify_one();
    }

    fn run(&self) {
        std::thread::scope(|scope| {
            for dir in self.partitions.dirs().iter() {
                scope.spawn(move || self.open_all(dir));
            }
        });
        let mut rounds = self.begin();
        while self.wait(rounds.pause) {
            self.round(&mut rounds);
        }
    }

    async fn run_as_task(&self) {
        self.partitions.dirs().iter().for_each(|dir| self.open_all(dir));
        let mut rounds = self.begin();
        while !self.is_stopping() {
            let _ = task::timeout(rounds.pause, self.stopped_task.notified()).await;
            if !self.is_stopping() {
                self.round(&mut rounds);
            }
        }
    }

    fn begin(&self) -> Rounds {
        let now = self.clock.monotonic_ms();
        Rounds {
            flush: Due::new(self.intervals.flush_ms, now),
            checkpoint: Due::new(self.intervals.checkpoint_ms, now),
            high_watermark: Due::new(self.intervals.high_watermark_ms, now),
            retention: Due::new(self.intervals.retention_ms, now),
            producers: Due::new(self.intervals.producer_check_ms, now),
            tail: TailBound::new(self.intervals.tail_bytes_max),
            pause: TICK,
        }
    }

    /// Whatever is due.
    fn round(&self, rounds: &mut Rounds) {
        let now = self.clock.monotonic_ms();
        self.flush_by_topic_setting(now);
        if rounds.flush.is_now(now) {
            self.flush_dirty();
        }
        if rounds.high_watermark.is_now(now) {
            self.partitions.save_high_watermarks();
        }
        if rounds.retention.is_now(now) {
            self.roll_and_retain();
        }
        if rounds.producers.is_now(now) {
            self.each_partition(|partition| {
                let expiration_ms = self.intervals.producer_expiration_ms;
                partition.with_open_log(|log| log.expire_producers(self.clock.now_ms(), expiration_ms));
            });
        }
        let more = self.partitions.remove_doomed(|| self.is_stopping());
        rounds.pause = if more { Duration::ZERO } else { TICK };
        self.remove_deleted_segments();
        let settled = rounds.tail.step(&self.partitions, &self.flusher);
        if settled || rounds.checkpoint.is_now(now) {
            self.save_checkpoints();
        } else if self.partitions.take_starts_moved() {
            self.partitions.save_checkpoints();
        }
        self.telemetry.upkeep(now);
    }

    /// `false` when it is time to end.
    fn wait(&self, pause: Duration) -> bool {
        let mut stop = self.stop.lock();
        if !*stop {
            self.stopped.wait_for(&mut stop, pause);
        }
        !*stop
    }

    fn is_stopping(&self) -> bool {
        *self.stop.lock()
    }

    fn each_partition(&self, mut work: impl FnMut(&Arc<Partition>)) {
        for topic in self.partitions.topics() {
            for partition in topic.partitions.iter().flatten() {
                if self.is_stopping() {
                    return;
                }
                work(partition);
            }
        }
    }

    /// Opens every log of a directory once after start, so that retention sees them and a recovery does not wait for the first client.
    fn open_all(&self, dir: &LogDir) {
        self.each_partition(|partition| {
            if partition.log_dir().index == dir.index && partition.exists_on_disk() {
                // An error was logged where it happened and is kept by the partition.
                let _ = partition.view();
            }
        });
    }

    fn flush_dirty(&self) {
        self.each_partition(|partition| {
            if partition.is_dirty() {
                self.flusher.request(partition);
            }
        });
    }

    /// `flush.ms` of a topic (Kafka's meaning): no record stays unsynced for longer.
    fn flush_by_topic_setting(&self, now: MonotonicMs) {
        self.each_partition(|partition| {
            let flush_ms = partition.config().flush_ms;
            if flush_ms < i64::MAX && partition.is_dirty() {
                let waited = partition.dirty_for_ms(now);
                if waited >= u64::try_from(flush_ms).unwrap_or(0) {
                    self.flusher.request(partition);
                }
            }
        });
    }

    fn roll_and_retain(&self) {
        let now = self.clock.now_ms();
        self.each_partition(|partition| {
            let done = partition.with_open_log(|log| {
                log.roll_if_due(now)?;
                log.retain(now, partition.high_watermark())
            });
            match done {
                Some(Ok(deleted)) if !deleted.is_empty() => {
                    self.telemetry.disk.segments_deleted(deleted.len() as u64);
                    tracing::info!(
                        partition = %partition.identity.topic_partition,
                        segments = deleted.len(),
                        "retention removed segments"
                    );
                    partition.waiters.wake_all();
                    self.partitions.note_start_moved();
                }
                Some(Err(error)) => {
                    tracing::error!(partition = %partition.identity.topic_partition, %error, "retention failed; trying again later");
                }
                _ => {}
            }
        });
    }

    /// Files of segments that retention or DeleteRecords let go, after `file.delete.delay.ms`.
    fn remove_deleted_segments(&self) {
        let now = self.clock.now_ms();
        self.each_partition(|partition| {
            if let Some(Err(error)) = partition.with_open_log(|log| log.remove_due(now)) {
                tracing::warn!(partition = %partition.identity.topic_partition, %error, "cannot remove a deleted segment; trying again later");
            }
        });
    }

    /// Moves every log's recovery point to what is synced, then writes the files that a start reads.
    fn save_checkpoints(&self) {
        self.each_partition(|partition| {
            if let Some(Err(error)) = partition.with_open_log(|log| log.checkpoint()) {
                partition.note_storage(&error);
            }
        });
        self.partitions.save_checkpoints();
    }
}
