//! The one task that writes the metadata log. Proposals that arrive while a write is under way are kept together and share the
//! next write and its sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use super::error::QuorumError;
use super::metalog::MetadataLog;
use super::{codec, snapshot};
use crate::base::LeaderEpoch;
use crate::host::{Host, task};
use crate::metadata::{Image, MetadataRecord};

/// Proposals that may wait; further ones are held back at the door.
pub(super) const PROPOSALS_QUEUED_MAX: usize = 1024;

/// Records in one write, unless a single proposal has more.
const RECORDS_PER_WRITE_MAX: usize = 20_000;

/// A snapshot is written when the log behind the last one is longer than this and than that snapshot.
const SNAPSHOT_AFTER_BYTES: u64 = 4 * 1024 * 1024;

pub(super) struct Proposal {
    pub(super) records: Vec<MetadataRecord>,
    pub(super) done: oneshot::Sender<Result<i64, QuorumError>>,
}

/// Where each new image goes.
pub(super) struct Published {
    pub(super) image: ArcSwap<Image>,
    pub(super) watch: watch::Sender<Arc<Image>>,
    /// What a start would have to read without the store.
    pub(super) bytes: AtomicU64,
}

pub(super) struct Committer {
    pub(super) host: Host,
    pub(super) log: Arc<Mutex<MetadataLog>>,
    pub(super) epoch: LeaderEpoch,
    pub(super) published: Arc<Published>,
    pub(super) proposals: mpsc::Receiver<Proposal>,
}

/// Proposals of one write, and the image after them.
struct Group {
    image: Image,
    records: Vec<MetadataRecord>,
    /// Each proposal's reply with the offset of its last record.
    waiting: Vec<(oneshot::Sender<Result<i64, QuorumError>>, i64)>,
}

impl Committer {
    /// Runs until every handle is gone.
    pub(super) async fn run(mut self) {
        let mut queue = Vec::new();
        let mut snapshot: Option<oneshot::Receiver<()>> = None;
        while self.proposals.recv_many(&mut queue, PROPOSALS_QUEUED_MAX).await > 0 {
            while !queue.is_empty() {
                let group = self.take_group(&mut queue);
                self.commit(group).await;
                if snapshot
                    .as_mut()
                    .is_none_or(|running| running.try_recv() != Err(oneshot::error::TryRecvError::Empty))
                {
                    snapshot = self.start_snapshot_if_due().await;
                }
            }
        }
        if let Some(running) = snapshot {
            let _ = running.await;
        }
    }

    /// Applies proposals to the image one by one; what does not fit is answered at once and leaves no trace.
    fn take_group(&self, queue: &mut Vec<Proposal>) -> Group {
        let image = Image::clone(&self.published.image.load());
        let mut group = Group { image, records: Vec::new(), waiting: Vec::new() };
        let mut taken = 0;
        for proposal in queue.iter() {
            if taken > 0 && group.records.len() + proposal.records.len() > RECORDS_PER_WRITE_MAX {
                break;
            }
            taken += 1;
            group.records.reserve(proposal.records.len());
        }
        for Proposal { records, done } in queue.drain(..taken) {
            let mut next = group.image.clone();
            let applied = records.iter().try_for_each(|record| next.apply(next.offset + 1, record));
            match applied {
                Ok(()) => {
                    group.waiting.push((done, next.offset));
                    group.image = next;
                    group.records.extend(records);
                }
                Err(error) => drop(done.send(Err(error.into()))),
            }
        }
        group
    }

    async fn commit(&self, group: Group) {
        let Group { image, records, waiting } = group;
        let written = if records.is_empty() { Ok(()) } else { self.write(records).await };
        if written.is_ok() {
            let image = Arc::new(image);
            self.published.image.store(image.clone());
            self.published.watch.send_replace(image);
        }
        for (done, offset) in waiting {
            let _ = done.send(written.clone().map(|()| offset));
        }
    }

    async fn write(&self, records: Vec<MetadataRecord>) -> Result<(), QuorumError> {
        let (log, epoch, now) = (self.log.clone(), self.epoch, self.host.clock.now_ms());
        let published = self.published.clone();
        task::blocking(move || {
            let mut log = log.lock();
            let batch = codec::encode(&records, log.next_offset, epoch, now);
            log.append(&batch, i64::try_from(records.len()).unwrap_or(i64::MAX))?;
            published.bytes.store(log.bytes(), Ordering::Relaxed);
            Ok(())
        })
        .await
    }

    /// Begins a new segment and writes the image aside, while proposals go on. The receiver says when that is over.
    async fn start_snapshot_if_due(&self) -> Option<oneshot::Receiver<()>> {
        let (log, host, epoch) = (self.log.clone(), self.host.clone(), self.epoch);
        let image = self.published.image.load_full();
        let due = task::blocking(move || {
            let mut log = log.lock();
            if log.bytes_since_snapshot < SNAPSHOT_AFTER_BYTES.max(log.snapshot_bytes) || log.failed.is_some() {
                return false;
            }
            log.bytes_since_snapshot = 0;
            log.roll()
                .inspect_err(|error| tracing::warn!(%error, "the metadata log cannot begin a new segment"))
                .is_ok()
        });
        if !due.await {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let log = self.log.clone();
        tokio::spawn(async move {
            let written = task::blocking(move || {
                let (disk, dir) = {
                    let log = log.lock();
                    (log.disk.clone(), log.dir.clone())
                };
                let (id, bytes) = snapshot::write(disk.as_ref(), &dir, &image, epoch, host.clock.now_ms())?;
                log.lock().note_snapshot(id, bytes)
            });
            if let Err(error) = written.await {
                tracing::warn!(%error, "a metadata snapshot cannot be written; the log goes on without it");
            }
            let _ = sender.send(());
        });
        Some(receiver)
    }
}
