//! Group commit, the lane of one log directory ([`super::lanes`] knows all of them): a thread that makes durable what requests wait for. While it works, further appends gather; the
//! next round takes them all.
//!
//! Small pieces of a round go into the flush journal and share one sync (see [`super::journal`]); large ones, and the first piece of a
//! new segment, are synced in their own files. This file is one of the floor's drivers: it blocks, so it has a thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use crate::host::task::{self, Worker};
use crate::host::{Clock, DiskFile, Workers};
use crate::log::FlushTargets;
use crate::replica::journal::{Journal, Place};
use crate::replica::partition::Partition;
use crate::replica::partition_sync::SyncMark;
use crate::telemetry::Telemetry;

/// When records are synced (`flush.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// `acks=all` is answered after a sync that is shared by everything waiting for the same disk.
    Sync,
    /// Synced every `flush.interval.ms`; nobody waits for it.
    Interval,
    /// Left to the operating system.
    Os,
}

/// Pieces above this size are synced where they are: copying them would cost more than the wait.
const JOURNALED_BYTES_MAX: u64 = 128 * 1024;

#[derive(Default)]
struct Queue {
    partitions: Vec<Arc<Partition>>,
    /// To be synced in their own files although nobody waits.
    tails: VecDeque<Arc<Partition>>,
    /// Those of `tails` that are not done, also the one that is being synced.
    unsettled: usize,
    /// How often the journal was asked to be emptied, and how often it was.
    empty_asked: u64,
    empty_done: u64,
    /// Whether the last try emptied it.
    is_emptied: bool,
    stop: bool,
}

/// What the thread does next: everything that requests wait for, and at most one tail, so that they never wait for many.
struct Round {
    partitions: Vec<Arc<Partition>>,
    tail: Option<Arc<Partition>>,
    /// The number of the last wish for an empty journal, if there is a new one.
    empty_asked: Option<u64>,
}

/// The queue of one disk.
pub(super) struct Lane {
    queue: Mutex<Queue>,
    ready: Condvar,
    /// The same bell for a flusher that runs as a task.
    ready_task: Notify,
    emptied: Condvar,
    /// Of a flusher that runs as a task: whoever cannot wait for it does its work.
    inline: Mutex<Option<Rounds>>,
}

impl Lane {
    /// Starts the thread. Without a journal every piece is synced in its own file.
    pub(super) fn start(
        index: usize,
        journal: Option<Journal>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> std::io::Result<(Arc<Lane>, JoinHandle<()>)> {
        let (flusher, mut rounds) = Lane::new(index, journal, clock, telemetry);
        let thread = std::thread::Builder::new().name("flusher".into()).spawn({
            let flusher = flusher.clone();
            move || flusher.work_off(&mut rounds)
        })?;
        Ok((flusher, thread))
    }

    /// The same, as a thread or as a task.
    pub(super) fn start_on(
        workers: Workers,
        index: usize,
        journal: Option<Journal>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> std::io::Result<(Arc<Lane>, Worker)> {
        if workers == Workers::Threads {
            let (flusher, thread) = Lane::start(index, journal, clock, telemetry)?;
            return Ok((flusher, Worker::of_thread(thread)));
        }
        let (flusher, rounds) = Lane::new(index, journal, clock, telemetry);
        *flusher.inline.lock() = Some(rounds);
        let task = flusher.clone();
        let worker = workers.start("flusher", move || async move {
            while !task.is_done() {
                task.ready_task.notified().await;
                task::wait_for_device().await;
                task.work_inline();
            }
            if let Some(rounds) = &mut *task.inline.lock() {
                rounds.sync_journaled();
            }
        })?;
        Ok((flusher, worker))
    }

    fn new(
        index: usize,
        journal: Option<Journal>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> (Arc<Lane>, Rounds) {
        let (ready, ready_task, emptied) = (Condvar::new(), Notify::new(), Condvar::new());
        let flusher = Lane { queue: Mutex::default(), ready, ready_task, emptied, inline: Mutex::new(None) };
        (Arc::new(flusher), Rounds::new(index, journal, clock, telemetry))
    }

    fn work_off(&self, rounds: &mut Rounds) {
        while let Some(round) = self.next_round() {
            self.work(rounds, round);
        }
        let emptied = rounds.sync_journaled();
        self.note_emptied(u64::MAX, emptied);
    }

    fn work(&self, rounds: &mut Rounds, round: Round) {
        if !round.partitions.is_empty() {
            rounds.flush(&round.partitions);
        }
        if let Some(tail) = round.tail {
            rounds.settle(tail);
            self.queue.lock().unsettled -= 1;
        }
        if let Some(asked) = round.empty_asked {
            let emptied = rounds.sync_journaled();
            self.note_emptied(asked, emptied);
        }
    }

    fn is_done(&self) -> bool {
        let queue = self.queue.lock();
        queue.stop && queue.partitions.is_empty()
    }

    /// Does what there is to do where nobody else would; `false` where a thread does it.
    fn work_inline(&self) -> bool {
        let mut inline = self.inline.lock();
        let Some(rounds) = &mut *inline else { return false };
        while let Some(round) = self.try_next_round() {
            self.work(rounds, round);
        }
        true
    }

    fn try_next_round(&self) -> Option<Round> {
        Lane::take_round(&mut self.queue.lock())
    }

    fn take_round(queue: &mut Queue) -> Option<Round> {
        let tail = queue.tails.pop_front();
        let empty_asked = (queue.empty_asked > queue.empty_done).then_some(queue.empty_asked);
        let is_something = tail.is_some() || empty_asked.is_some() || !queue.partitions.is_empty();
        is_something.then(|| Round { partitions: std::mem::take(&mut queue.partitions), tail, empty_asked })
    }

    fn ring(&self) {
        self.ready.notify_one();
        self.ready_task.notify_one();
    }

    /// Asks for everything appended to the partition so far to become durable. Cheap when it is already on the list.
    pub(super) fn request(&self, partition: &Arc<Partition>) {
        if partition.flush_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut queue = self.queue.lock();
        queue.partitions.push(partition.clone());
        let first = queue.partitions.len() == 1;
        drop(queue);
        if first {
            self.ring();
        }
    }

    /// Asks for the partition's own files to be synced, between what requests wait for, so that its recovery point can move.
    pub(super) fn settle(&self, partition: Arc<Partition>) {
        let mut queue = self.queue.lock();
        queue.unsettled += 1;
        queue.tails.push_back(partition);
        drop(queue);
        self.ring();
    }

    /// Whether something of what [`Lane::settle`] asked for is not done.
    pub(super) fn is_settling(&self) -> bool {
        self.queue.lock().unsettled > 0
    }

    /// Returns when the journal holds nothing that is not also in synced files: what it held before will never be written again. `false`
    /// when that did not work: the directory has failed, or the machine lacks something that it may have again in a moment. Blocks.
    #[must_use]
    pub(super) fn empty_journal(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.empty_asked += 1;
        let asked = queue.empty_asked;
        drop(queue);
        if self.work_inline() {
            return self.queue.lock().is_emptied;
        }
        self.ready.notify_one();
        let mut queue = self.queue.lock();
        while queue.empty_done < asked {
            self.emptied.wait(&mut queue);
        }
        queue.is_emptied
    }

    fn note_emptied(&self, asked: u64, emptied: bool) {
        let mut queue = self.queue.lock();
        (queue.empty_done, queue.is_emptied) = (asked, emptied);
        drop(queue);
        self.emptied.notify_all();
    }

    /// Lets the thread end after what requests wait for now.
    pub(super) fn stop(&self) {
        self.queue.lock().stop = true;
        self.ring();
    }

    fn next_round(&self) -> Option<Round> {
        let mut queue = self.queue.lock();
        loop {
            if queue.stop && queue.partitions.is_empty() {
                return None;
            }
            if let Some(round) = Lane::take_round(&mut queue) {
                return Some(round);
            }
            self.ready.wait(&mut queue);
        }
    }
}

/// What of a partition is not durable yet, when it is small and in one known place.
pub(super) struct Piece {
    partition: Arc<Partition>,
    place: Place,
    file: Arc<dyn DiskFile>,
    len: usize,
    /// What holds once it is durable.
    mark: SyncMark,
}

/// The thread's own state.
pub(super) struct Rounds {
    /// The place of its directory among the node's.
    index: usize,
    journal: Option<Journal>,
    /// Partitions with something in the journal that their own files have not been synced for.
    journaled: Vec<Arc<Partition>>,
    /// The journal was left as it is, with its directory.
    entries_stay: bool,
    clock: Arc<dyn Clock>,
    telemetry: Arc<Telemetry>,
}

impl Rounds {
    pub(super) fn new(
        index: usize,
        journal: Option<Journal>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> Rounds {
        Rounds { index, journal, journaled: Vec::new(), entries_stay: false, clock, telemetry }
    }

    pub(super) fn flush(&mut self, partitions: &[Arc<Partition>]) {
        let started = self.clock.monotonic_nanos();
        let mut small = Vec::new();
        let mut large = Vec::new();
        for partition in partitions {
            // Cleared before looking: an append after this line asks again.
            partition.begin_flush();
            match self.piece(partition) {
                Some(piece) => small.push(piece),
                None => large.push(partition.clone()),
            }
        }
        large.extend(self.commit(small));
        self.sync(&large);
        self.telemetry.disk.flushed(self.clock.monotonic_nanos().saturating_sub(started), partitions.len() as u64);
    }

    /// Syncs a partition's own files, also what the journal holds of it.
    fn settle(&self, partition: Arc<Partition>) {
        if partition.open_view().is_none() {
            return;
        }
        let started = self.clock.monotonic_nanos();
        partition.begin_flush();
        self.sync(&[partition]);
        self.telemetry.disk.flushed(self.clock.monotonic_nanos().saturating_sub(started), 1);
    }

    pub(super) fn piece(&self, partition: &Arc<Partition>) -> Option<Piece> {
        self.journal.as_ref()?;
        // One that has moved since it asked is not to be found by this journal's entries.
        let is_elsewhere = partition.log_dir().index != self.index;
        if is_elsewhere || partition.unjournaled.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let view = partition.open_view()?;
        let segment = view.segments.last()?;
        let from = partition.sync_mark().filter(|mark| mark.segment_base == segment.base_offset())?;
        let len = view.end_position.checked_sub(from.position).filter(|len| *len <= JOURNALED_BYTES_MAX)?;
        Some(Piece {
            partition: partition.clone(),
            place: Place {
                dir_name: partition.identity.topic_partition.dir_name(),
                topic_id: partition.identity.topic_id,
                segment_base: from.segment_base,
                position: from.position,
            },
            file: segment.file().ok()?,
            len: usize::try_from(len).ok()?,
            mark: SyncMark { position: view.end_position, up_to: view.log_end_offset, ..from },
        })
    }

    /// Makes small pieces durable together. Gives back the partitions for which that did not work.
    fn commit(&mut self, pieces: Vec<Piece>) -> Vec<Arc<Partition>> {
        let fits = self
            .journal
            .as_ref()
            .is_some_and(|journal| journal.has_room(pieces.iter().map(|piece| (&piece.place, piece.len))));
        let fits = fits || pieces.is_empty() || self.sync_journaled();
        let Some(journal) = self.journal.as_mut().filter(|_| fits) else {
            return pieces.into_iter().map(|piece| piece.partition).collect();
        };
        let mut failed = Vec::new();
        let mut collected = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let filled =
                journal.collect(&piece.place, piece.len, |room| piece.file.read_exact_at(room, piece.place.position));
            match filled {
                Ok(()) => collected.push(piece),
                Err(_) => failed.push(piece.partition),
            }
        }
        match journal.commit() {
            Ok(()) => collected.into_iter().for_each(|piece| self.note_journaled(piece)),
            Err(error) if error.is_disk_full() => failed.extend(collected.into_iter().map(|piece| piece.partition)),
            Err(error) => {
                for piece in collected {
                    piece.partition.fail_disk(Some(error.path.as_path()), &error.to_string());
                }
            }
        }
        failed
    }

    /// What `Partition::journaled` says of those in this journal.
    fn mark(&self) -> usize {
        self.index + 1
    }

    pub(super) fn note_journaled(&mut self, piece: Piece) {
        let Piece { partition, mark, .. } = piece;
        partition.set_sync_mark(mark);
        if partition.journaled.swap(self.mark(), Ordering::Relaxed) != self.mark() {
            self.journaled.push(partition);
        }
    }

    /// Syncs the files of everything that is only in the journal, and begins the journal again. `false` when that did not work: a start would
    /// write again what the journal holds.
    pub(super) fn sync_journaled(&mut self) -> bool {
        let partitions = std::mem::take(&mut self.journaled);
        if partitions.is_empty() && !self.journal.as_ref().is_some_and(Journal::is_torn) {
            return !self.entries_stay;
        }
        self.sync(&partitions);
        let all_safe = partitions.iter().all(|partition| partition.journaled.load(Ordering::Relaxed) != self.mark());
        if all_safe {
            match self.journal.as_mut().map_or(Ok(()), Journal::begin_again) {
                Ok(()) => return true,
                // It is torn until that works.
                Err(error) if error.is_disk_full() => return false,
                Err(error) => {
                    for partition in &partitions {
                        partition.fail_disk(Some(error.path.as_path()), &error.to_string());
                    }
                }
            }
        }
        if partitions.iter().any(|partition| partition.disk_has_failed()) {
            // The directory is offline by now, and its entries stay for the next start.
            (self.journal, self.entries_stay) = (None, true);
        } else if !all_safe {
            // For want of descriptors, say.
            self.journaled = partitions;
        }
        false
    }

    /// Starts the device on every file first and waits for each afterwards, so that one round costs about one wait.
    fn sync(&self, partitions: &[Arc<Partition>]) {
        let rounds: Vec<_> = partitions.iter().map(|partition| (partition, targets(partition))).collect();
        if rounds.len() > 1 {
            rounds
                .iter()
                .filter_map(|(_, targets)| targets.as_ref())
                .for_each(|(targets, _)| targets.start_writeback());
        }
        for (partition, targets) in rounds {
            if let Some((targets, mark)) = targets {
                self.finish(partition, &targets, mark);
            }
        }
    }

    pub(super) fn finish(&self, partition: &Partition, targets: &FlushTargets, mark: SyncMark) {
        match targets.sync() {
            Ok(()) => {
                partition.with_open_log(|log| {
                    if partition.cuts.load(Ordering::SeqCst) == mark.cut {
                        log.note_flushed(targets);
                    }
                });
                let own = self.mark();
                let _ = partition.journaled.compare_exchange(own, 0, Ordering::Relaxed, Ordering::Relaxed);
                partition.set_sync_mark(mark);
            }
            Err(error) if error.is_passing() => {
                // Only a directory was not opened. Who waits is told so and may come again; then everything is synced once more.
                partition.with_open_log(|log| log.note_not_flushed(targets));
                partition.note_storage(&error);
                partition.fail_all_acks();
            }
            Err(error) if partition.has_left(&error) => {
                // The replica has moved since, and is on another device.
                partition.settle_acks();
            }
            Err(error) => {
                if partition.is_retired() {
                    // Nothing of it has to be kept, also not what the journal holds.
                    partition.journaled.store(0, Ordering::Relaxed);
                } else {
                    self.telemetry.disk.flush_failed();
                }
                partition.fail_disk(error.path(), &error.to_string());
            }
        }
    }
}

/// What to sync of a partition, and what holds afterwards. Who waits for one that is offline is told so.
pub(super) fn targets(partition: &Partition) -> Option<(FlushTargets, SyncMark)> {
    if partition.disk_has_failed() {
        // Never asked again: pages that could not be written may be gone and count as clean, so a second sync would lie (A9). What
        // the journal holds of it stays there for the next start.
        partition.fail_all_acks();
        return None;
    }
    let found = partition.with_open_log(|log| {
        let targets = log.flush_targets()?;
        let view = log.view();
        let segment_base = view.segments.last().map_or(0, |segment| segment.base_offset());
        let cut = partition.cuts.load(Ordering::SeqCst);
        Ok((targets, SyncMark { segment_base, position: view.end_position, up_to: view.log_end_offset, cut }))
    });
    match found {
        Some(Ok(found)) => Some(found),
        Some(Err(error)) => {
            partition.note_storage(&error);
            partition.fail_all_acks();
            None
        }
        None => {
            // Retired or offline: nothing of it has to be kept.
            partition.journaled.store(0, Ordering::Relaxed);
            partition.fail_all_acks();
            None
        }
    }
}
