//! Proposals on their way into the log. Those that arrive while a write is under way are kept together and share the next one.

use std::sync::Arc;
use std::time::Duration;

use openraft::error::{ClientWriteError, RaftError};
use tokio::sync::{mpsc, oneshot};

use super::core::Core;
use super::error::QuorumError;
use super::types::{Change, Rejected, Request};
use crate::host::task;

/// Proposals that may wait; further ones are held back at the door.
pub(super) const PROPOSALS_QUEUED_MAX: usize = 1024;

/// Records in one entry, unless a single proposal has more.
const RECORDS_PER_ENTRY_MAX: usize = 20_000;

/// How long a majority may take to agree.
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// After this node has ceased to lead, an agreement is hardly to be expected any more.
const LATE_AGREEMENT_TIMEOUT: Duration = Duration::from_millis(500);

/// A node that needs nobody else's consent gets this time to begin anew.
const OWN_LEADERSHIP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Proposal {
    pub(super) change: Change,
    pub(super) done: oneshot::Sender<Result<i64, QuorumError>>,
}

type Waiting = Vec<(Option<i64>, oneshot::Sender<Result<i64, QuorumError>>)>;

/// Runs until every sender is gone.
pub(super) async fn run(core: Arc<Core>, mut proposals: mpsc::Receiver<Proposal>) {
    let mut queue = Vec::new();
    while proposals.recv_many(&mut queue, PROPOSALS_QUEUED_MAX).await > 0 {
        while !queue.is_empty() {
            let (changes, waiting) = take_group(&mut queue);
            let agreed = core.agree_on(changes).await;
            answer(waiting, agreed);
        }
    }
}

fn take_group(queue: &mut Vec<Proposal>) -> (Vec<Change>, Waiting) {
    let (mut taken, mut records) = (0, 0);
    for proposal in queue.iter() {
        records += proposal.change.records.len();
        if taken > 0 && records > RECORDS_PER_ENTRY_MAX {
            break;
        }
        taken += 1;
    }
    let group = queue.drain(..taken);
    group
        .map(|proposal| (proposal.change, proposal.done))
        .map(|(change, done)| {
            let expected = change.expected_offset;
            (change, (expected, done))
        })
        .unzip()
}

fn answer(waiting: Waiting, agreed: Result<Vec<Result<i64, Rejected>>, QuorumError>) {
    match agreed {
        Ok(results) => {
            for ((expected, done), result) in waiting.into_iter().zip(results) {
                let _ = done.send(result.map_err(|rejected| refusal(rejected, expected)));
            }
        }
        Err(error) => {
            for (_, done) in waiting {
                let _ = done.send(Err(error.clone()));
            }
        }
    }
}

fn refusal(rejected: Rejected, expected: Option<i64>) -> QuorumError {
    match rejected {
        Rejected::Stale { offset } => QuorumError::Stale { expected: expected.unwrap_or(offset), found: offset },
        Rejected::DoesNotFit(error) => QuorumError::Refused(error),
    }
}

impl Core {
    /// Has the changes written as one entry. An answer means agreed on, applied here, and published.
    async fn agree_on(&self, changes: Vec<Change>) -> Result<Vec<Result<i64, Rejected>>, QuorumError> {
        self.wait_to_lead().await?;
        let raft = self.raft();
        let request = Request { changes: Arc::new(changes) };
        let mut leadership = self.leadership.subscribe();
        let lost = async {
            let _ = leadership.wait_for(|leadership| !leadership.is_me).await;
            task::sleep(LATE_AGREEMENT_TIMEOUT).await;
        };
        let written = tokio::select! {
            biased;
            written = raft.client_write(request) => written,
            () = lost => return Err(self.why_not()),
            () = task::sleep(AGREEMENT_TIMEOUT) => return Err(QuorumError::TimedOut),
        };
        match written {
            Ok(response) => Ok(response.data.results),
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => {
                Err(QuorumError::NotLeader { leader: forward.leader_id.filter(|leader| *leader != self.node_id) })
            }
            Err(RaftError::APIError(error)) => Err(QuorumError::Membership(error.to_string())),
            Err(RaftError::Fatal(fatal)) => Err(QuorumError::Storage(fatal.to_string())),
        }
    }

    fn why_not(&self) -> QuorumError {
        match self.metrics().running_state {
            Err(fatal) => QuorumError::Storage(fatal.to_string()),
            Ok(()) => QuorumError::TimedOut,
        }
    }

    async fn wait_to_lead(&self) -> Result<(), QuorumError> {
        if self.leadership.borrow().is_me {
            return Ok(());
        }
        if self.storage.log.has_failed()
            && let Some(error) = self.last_error.lock().clone()
        {
            return Err(error);
        }
        if self.is_only_voter(&self.metrics()) {
            let mut leadership = self.leadership.subscribe();
            let leading = leadership.wait_for(|leadership| leadership.is_me);
            if matches!(task::timeout(OWN_LEADERSHIP_TIMEOUT, leading).await, Some(Ok(_))) {
                return Ok(());
            }
            if let Some(error) = self.last_error.lock().clone() {
                return Err(error);
            }
        }
        Err(QuorumError::NotLeader { leader: self.leadership.borrow().leader })
    }
}
