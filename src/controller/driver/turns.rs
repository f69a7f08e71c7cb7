//! Turns: what waits is decided together, each decision on the image as the ones before it leave it, and kept with one proposal. So
//! a hundred leaders that shrink their in-sync sets at once cost one round of the quorum and not a hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot, watch};

use super::ControllerOptions;
use super::doubt::must_be_certain;
use crate::controller::decide::Decision;
use crate::controller::decide::eligible::consequences;
use crate::controller::decide::rules::Rules;
use crate::metadata::{Image, MetadataRecord};
use crate::quorum::{Leadership, Quorum, QuorumError};

/// Decisions that may wait; further ones are held back at the door.
pub(super) const JOBS_QUEUED_MAX: usize = 1_024;

/// A turn takes no further decision when it has this many records.
const RECORDS_PER_TURN_MAX: usize = 5_000;

/// Records in one proposal. A decision with more is kept in several, in its order, and is made so that each prefix of it is sound.
const RECORDS_PER_PROPOSAL_MAX: usize = 5_000;

/// How often decisions are made again because the image moved on under them.
const ATTEMPTS_MAX: usize = 5;

/// Counts since the start of the process.
#[derive(Debug, Default)]
pub struct ControllerCounts {
    /// Leaders elected that were not in sync: records may be lost.
    pub unclean_elections: AtomicU64,
    /// Leaders elected, the unclean ones among them.
    pub elections: AtomicU64,
    /// Brokers fenced because they were not heard any more.
    pub brokers_fenced: AtomicU64,
}

/// A decision that waits for its turn.
pub(super) trait Job: Send {
    fn decide(&mut self, image: &Image) -> Vec<MetadataRecord>;
    fn answer(self: Box<Self>, outcome: Result<i64, QuorumError>);
}

struct Question<F, R> {
    decide: F,
    reply: Option<R>,
    done: oneshot::Sender<Result<(R, i64), QuorumError>>,
}

impl<F, R> Job for Question<F, R>
where
    F: FnMut(&Image) -> Decision<R> + Send,
    R: Send,
{
    fn decide(&mut self, image: &Image) -> Vec<MetadataRecord> {
        let Decision { records, reply } = (self.decide)(image);
        self.reply = Some(reply);
        records
    }

    fn answer(self: Box<Self>, outcome: Result<i64, QuorumError>) {
        let Question { reply, done, .. } = *self;
        let answer = outcome.and_then(|offset| reply.map(|reply| (reply, offset)).ok_or(QuorumError::Closed));
        // Whoever asked may be gone; what was decided is kept all the same.
        let _ = done.send(answer);
    }
}

/// The way to the next turn. Cheap to clone.
#[derive(Clone)]
pub(super) struct Turns {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl Turns {
    /// Starts the one task that takes turns; it ends with the last handle.
    pub(super) fn start(
        quorum: Quorum,
        leadership: watch::Receiver<Leadership>,
        counts: Arc<ControllerCounts>,
        options: ControllerOptions,
    ) -> Turns {
        let (jobs, queue) = mpsc::channel(JOBS_QUEUED_MAX);
        tokio::spawn(Worker { quorum, leadership, counts, queue, options }.run());
        Turns { jobs }
    }

    /// Decides when it is this decision's turn, and answers when the records are kept. Goes through to its end even when the caller
    /// is dropped meanwhile.
    pub(super) async fn take<R: Send + 'static>(
        &self,
        decide: impl FnMut(&Image) -> Decision<R> + Send + 'static,
    ) -> Result<(R, i64), QuorumError> {
        must_be_certain()?;
        let (done, answer) = oneshot::channel();
        let job = Box::new(Question { decide, reply: None, done });
        self.jobs.send(job).await.map_err(|_| QuorumError::Closed)?;
        answer.await.map_err(|_| QuorumError::Closed)?
    }
}

struct Worker {
    quorum: Quorum,
    leadership: watch::Receiver<Leadership>,
    counts: Arc<ControllerCounts>,
    queue: mpsc::Receiver<Box<dyn Job>>,
    options: ControllerOptions,
}

/// Decisions of one turn: what they keep, and where each one's records end.
struct Turn {
    records: Vec<MetadataRecord>,
    outcomes: Vec<Result<i64, QuorumError>>,
}

impl Worker {
    async fn run(mut self) {
        let mut waiting = Vec::new();
        while self.queue.recv_many(&mut waiting, JOBS_QUEUED_MAX).await > 0 {
            while !waiting.is_empty() {
                let (count, outcomes) = self.turn(&mut waiting).await;
                for (job, outcome) in waiting.drain(..count).zip(outcomes) {
                    job.answer(outcome);
                }
            }
        }
    }

    /// Decides as many of the waiting jobs as fit one turn. Answers how many, and their outcomes.
    async fn turn(&self, waiting: &mut [Box<dyn Job>]) -> (usize, Vec<Result<i64, QuorumError>>) {
        let mut attempts = 0;
        loop {
            let may_decide = self.leadership.borrow().must_be_me();
            if let Err(error) = may_decide {
                return (waiting.len(), waiting.iter().map(|_| Err(error.clone())).collect());
            }
            let image = self.quorum.image();
            let Turn { records, mut outcomes } = {
                let rules = Rules { node_id: self.options.node_id, fixed: &*self.options.static_properties };
                decide_some(&image, &rules, waiting)
            };
            let kept = self.keep(&image, records).await;
            attempts += 1;
            match kept {
                // The image moved on under the decision, so that it has to be made again.
                Err(QuorumError::Stale { .. }) if attempts < ATTEMPTS_MAX => {}
                Err(error) => {
                    for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_ok()) {
                        *outcome = Err(error.clone());
                    }
                    return (outcomes.len(), outcomes);
                }
                Ok(()) => return (outcomes.len(), outcomes),
            }
        }
    }

    async fn keep(&self, image: &Image, mut records: Vec<MetadataRecord>) -> Result<(), QuorumError> {
        let mut offset = image.offset;
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(RECORDS_PER_PROPOSAL_MAX));
            let elections = Elections::among(image, &records);
            offset = self.quorum.propose_at(offset, records).await?;
            elections.note(&self.counts);
            records = rest;
        }
        Ok(())
    }
}

fn decide_some(image: &Image, rules: &Rules<'_>, waiting: &mut [Box<dyn Job>]) -> Turn {
    let mut image = image.clone();
    let mut turn = Turn { records: Vec::new(), outcomes: Vec::new() };
    for job in waiting {
        if turn.records.len() >= RECORDS_PER_TURN_MAX {
            break;
        }
        match decide_one(&image, rules, &mut **job) {
            Ok((records, next)) => {
                turn.outcomes.push(Ok(next.offset));
                turn.records.extend(records);
                image = next;
            }
            Err(error) => turn.outcomes.push(Err(error)),
        }
    }
    turn
}

/// One decision's records and the image with them. A decision that panics spoils only itself.
fn decide_one(
    image: &Image,
    rules: &Rules<'_>,
    job: &mut dyn Job,
) -> Result<(Vec<MetadataRecord>, Image), QuorumError> {
    let decided = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.decide(image)));
    let mut records = decided.map_err(|_| {
        tracing::error!("a decision of the controller panicked");
        QuorumError::Closed
    })?;
    let mut next = image.clone();
    apply(&mut next, &records)?;
    let consequences = consequences(&next, rules, &records);
    apply(&mut next, &consequences)?;
    records.extend(consequences);
    Ok((records, next))
}

fn apply(image: &mut Image, records: &[MetadataRecord]) -> Result<(), QuorumError> {
    Ok(records.iter().try_for_each(|record| image.apply(image.offset + 1, record))?)
}

/// Elections among the records of one proposal.
#[derive(Default)]
struct Elections {
    elected: u64,
    /// Topic, partition, new leader.
    unclean: Vec<(Arc<str>, i32, i32)>,
}

impl Elections {
    fn among(image: &Image, records: &[MetadataRecord]) -> Elections {
        let mut found = Elections::default();
        for record in records {
            let MetadataRecord::Partition { topic_id, partition, state } = record else { continue };
            let Some(topic) = image.topic_by_id(*topic_id) else { continue };
            let Some(old) = topic.partition(*partition) else { continue };
            found.elected += u64::from(state.has_leader() && state.leader != old.leader);
            if state.recovering && !old.recovering {
                found.unclean.push((topic.name.clone(), *partition, state.leader));
            }
        }
        found
    }

    fn note(self, counts: &ControllerCounts) {
        counts.elections.fetch_add(self.elected, Ordering::Relaxed);
        for (topic, partition, leader) in &self.unclean {
            counts.unclean_elections.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                topic = &**topic,
                partition,
                leader,
                "unclean election: records that were acknowledged may be lost"
            );
        }
    }
}
