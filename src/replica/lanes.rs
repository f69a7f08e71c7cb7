//! Group commit over all log directories: each has a lane of its own, so that a slow disk does not hold up the others.

use std::sync::Arc;

use crate::host::task::Worker;
use crate::host::{Clock, Workers};
use crate::replica::flusher::Lane;
use crate::replica::journal::Journal;
use crate::replica::log_dirs::LogDir;
use crate::replica::partition::Partition;
use crate::telemetry::Telemetry;

/// The lanes, in the order of the directories.
pub struct Flusher {
    first: Arc<Lane>,
    lanes: Vec<Arc<Lane>>,
}

impl Flusher {
    /// Starts a lane for each directory, as a thread or as a task. Without a journal every piece is synced in its own file.
    pub fn start_on(
        workers: Workers,
        journals: Vec<Option<Journal>>,
        clock: &Arc<dyn Clock>,
        telemetry: &Arc<Telemetry>,
    ) -> std::io::Result<(Arc<Flusher>, Vec<Worker>)> {
        let (mut lanes, mut at_work) = (Vec::new(), Vec::new());
        for (index, journal) in journals.into_iter().enumerate() {
            let (lane, worker) = Lane::start_on(workers, index, journal, clock.clone(), telemetry.clone())?;
            lanes.push(lane);
            at_work.push(worker);
        }
        let first = lanes.first().cloned().ok_or_else(|| std::io::Error::other("no log directory"))?;
        Ok((Arc::new(Flusher { first, lanes }), at_work))
    }

    /// The lane of one directory, as a thread.
    #[cfg(test)]
    pub fn start(
        journal: Option<Journal>,
        clock: Arc<dyn Clock>,
        telemetry: Arc<Telemetry>,
    ) -> std::io::Result<(Arc<Flusher>, std::thread::JoinHandle<()>)> {
        let (first, thread) = Lane::start(0, journal, clock, telemetry)?;
        Ok((Arc::new(Flusher { lanes: vec![first.clone()], first }), thread))
    }

    #[inline]
    fn lane(&self, dir: &LogDir) -> &Arc<Lane> {
        self.lanes.get(dir.index).unwrap_or(&self.first)
    }

    /// Asks for everything appended to the partition so far to become durable. Cheap when it is already on the list.
    #[inline]
    pub fn request(&self, partition: &Arc<Partition>) {
        self.lane(partition.log_dir()).request(partition);
    }

    /// Asks for the partitions' own files to be synced, between what requests wait for, so that their recovery points can move.
    pub fn settle(&self, partitions: Vec<Arc<Partition>>) {
        for partition in &partitions {
            let lane = self.lane(partition.log_dir());
            lane.settle(partition.clone());
        }
    }

    /// Whether something of what [`Flusher::settle`] asked for is not done.
    pub fn is_settling(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_settling())
    }

    /// Returns when the directory's journal holds nothing that is not also in synced files: what it held before will never be written
    /// again. `false` when that did not work: the directory has failed, or the machine lacks something that it may have again in a moment.
    /// Blocks.
    #[must_use]
    pub fn empty_journal(&self, dir: &LogDir) -> bool {
        self.lane(dir).empty_journal()
    }

    /// Lets the lanes end after what requests wait for now.
    pub fn stop(&self) {
        self.lanes.iter().for_each(|lane| lane.stop());
    }
}
