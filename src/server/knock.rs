//! A node that has no vote finds the quorum by knocking: it says hello to controllers it was told of until one of them knows who is
//! active, and then to that one, which takes it in as an observer. What it waits for is said when that takes long.
//!
//! A node that leads a cluster of its own knocks, too, at those its settings name: they may be of another cluster, and then it would go on
//! alone for ever without a word.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Broker;
use crate::base::{BrokerId, MonotonicMs, NodeAddress};
use crate::host::task;
use crate::peer::{LeaderHint, PeerError};

/// How long one door is waited at.
const KNOCK_MAX: Duration = Duration::from_secs(1);

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(300);

/// The same while there is a leader: only doors at which nobody was yet are left.
const STRANGERS_PAUSE: Duration = Duration::from_secs(5);

/// While a cluster starts, that nobody is there yet is usual for so long.
const PATIENCE_MS: MonotonicMs = 5_000;

/// A name that leads here, but that the settings do not show to be this node's: it could as well have been another one's.
const ONLY_MYSELF: &str = "controller.quorum.bootstrap.servers leads to this node alone, by a name that is not its own: to begin a cluster, \
                           use the name of advertised.listeners there, or leave it empty";

/// Never ends: the quorum can be lost again. `has_vote`: the quorum itself looks for the others.
pub async fn find_quorum(broker: Arc<Broker>, doors: Vec<NodeAddress>, has_vote: bool) {
    let mut leadership = broker.controller.quorum().leadership();
    let mut said = Said::default();
    let mut strangers = doors.clone();
    loop {
        let now = leadership.borrow_and_update().clone();
        if now.leader.is_none() && !has_vote {
            let round = knock_at_all(&broker, &doors).await;
            said.note(round, &broker, &doors);
        } else if now.leader.is_some() {
            said.found();
        }
        if now.is_me && is_alone(&broker) {
            meet_strangers(&broker, &mut strangers, &mut said).await;
        }
        let pause = if leadership.borrow().leader.is_none() { PAUSE } else { STRANGERS_PAUSE };
        tokio::select! {
            () = task::sleep(pause) => {}
            _ = leadership.changed() => {}
        }
    }
}

/// What a round of knocking has brought.
#[derive(Default)]
struct Round {
    own: usize,
    /// Nobody lets this node in, and why.
    refused: Option<String>,
    /// Somebody is there, who knows of no leader.
    has_answer: bool,
    leader: Option<BrokerId>,
    error: Option<PeerError>,
}

enum Found {
    Myself,
    Another(Option<LeaderHint>),
}

async fn knock_at_all(broker: &Broker, doors: &[NodeAddress]) -> Round {
    let mut round = Round::default();
    for door in doors {
        match knock(broker, door).await {
            Ok(Found::Myself) => round.own += 1,
            Ok(Found::Another(None)) => round.has_answer = true,
            Ok(Found::Another(Some(leader))) => round.leader = Some(leader.id),
            Err(error @ PeerError::Refused { .. }) => round.refused = Some(error.to_string()),
            Err(error) => round.error = Some(error),
        }
    }
    round
}

async fn knock(broker: &Broker, door: &NodeAddress) -> Result<Found, PeerError> {
    let answer = broker.peers.meet(door, KNOCK_MAX).await?;
    if answer.identity == broker.peers.myself().identity {
        return Ok(Found::Myself);
    }
    if let Some(leader) = answer.leader.as_ref().filter(|leader| leader.address != *door) {
        broker.peers.meet(&leader.address, KNOCK_MAX).await?;
    }
    Ok(Found::Another(answer.leader))
}

/// Nobody else has a vote.
fn is_alone(broker: &Broker) -> bool {
    broker.controller.quorum().describe().voters.len() == 1
}

/// Asks each of those that the settings name once whether they are of this cluster.
async fn meet_strangers(broker: &Broker, strangers: &mut Vec<NodeAddress>, said: &mut Said) {
    for door in std::mem::take(strangers) {
        match broker.peers.meet(&door, KNOCK_MAX).await {
            Ok(_) => {}
            Err(error @ PeerError::Refused { .. }) => {
                said.complain(&format!(
                    "this node goes on with a cluster of its own and is kept out of the one that is configured: {error}"
                ));
            }
            Err(_) => strangers.push(door),
        }
    }
}

/// What this node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Answer,
    Leader,
    BeingReached(BrokerId),
}

/// What the log says already.
#[derive(Default)]
struct Said {
    complaint: String,
    /// Since when there is no leader.
    since: Option<MonotonicMs>,
    wait: Option<Wait>,
}

impl Said {
    fn found(&mut self) {
        (self.since, self.wait) = (None, None);
    }

    fn note(&mut self, round: Round, broker: &Broker, doors: &[NodeAddress]) {
        let now = broker.host.clock.monotonic_ms();
        let since = *self.since.get_or_insert(now);
        if let Some(sentence) = &round.refused {
            return self.complain(sentence);
        }
        if round.own > 0 && round.own == doors.len() {
            return self.complain(ONLY_MYSELF);
        }
        let wait = match round.leader {
            Some(leader) => Wait::BeingReached(leader),
            None if round.has_answer => Wait::Leader,
            None => Wait::Answer,
        };
        if now.saturating_sub(since) >= PATIENCE_MS && self.wait.replace(wait) != Some(wait) {
            tell(wait, broker, doors, round.error.as_ref());
        }
    }

    /// Whoever is not let in must know why, once.
    fn complain(&mut self, sentence: &str) {
        if self.complaint != sentence {
            tracing::error!("{sentence}");
            sentence.clone_into(&mut self.complaint);
        }
    }
}

fn tell(wait: Wait, broker: &Broker, doors: &[NodeAddress], error: Option<&PeerError>) {
    let named = || doors.iter().map(NodeAddress::to_string).collect::<Vec<_>>().join(", ");
    match wait {
        Wait::Answer => tracing::warn!(
            error = error.map(tracing::field::display),
            "this node has no vote and waits for the metadata quorum, but no controller answers at {}: start the controllers, or correct \
             controller.quorum.bootstrap.servers or controller.quorum.voters",
            named()
        ),
        Wait::Leader => tracing::warn!(
            "this node has no vote and waits for the metadata quorum, but the controllers at {} know of no leader: a majority of the voters must run \
             and reach each other",
            named()
        ),
        Wait::BeingReached(leader) => {
            let own = broker.peers.myself().hello().quorum_address.map(|address| address.to_string());
            tracing::warn!(
                "node {leader} leads the metadata quorum but does not reach this node, which says that it is at {}: correct that address \
                 (advertised.listeners), or stop the other process that runs as node {}",
                own.unwrap_or_default(),
                broker.options.node_id
            );
        }
    }
}
