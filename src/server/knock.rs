//! A node that has no vote finds the quorum by knocking: it says hello to controllers it was told of until one of them knows who is
//! active, and then to that one, which takes it in as an observer.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Broker;
use crate::base::NodeAddress;
use crate::host::task;
use crate::peer::PeerError;

/// How long one door is waited at.
const KNOCK_MAX: Duration = Duration::from_secs(1);

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(300);

/// A name that leads here, but that the settings do not show to be this node's: it could as well have been another one's.
const ONLY_MYSELF: &str = "controller.quorum.bootstrap.servers leads to this node alone, by a name that is not its own: to begin a cluster, \
                           use the name of advertised.listeners there, or leave it empty";

/// Never ends: the quorum can be lost again.
pub async fn find_quorum(broker: Arc<Broker>, doors: Vec<NodeAddress>) {
    let mut leadership = broker.controller.quorum().leadership();
    let mut complaint = String::new();
    loop {
        if leadership.borrow_and_update().leader.is_none() {
            let mut own = 0;
            for door in &doors {
                match knock(&broker, door).await {
                    Ok(Found::Myself) => own += 1,
                    Ok(Found::Another) => {}
                    Err(error @ PeerError::Refused { .. }) => complain(&mut complaint, &error.to_string()),
                    // That nobody is there yet is usual while a cluster starts.
                    Err(_) => {}
                }
            }
            if own > 0 && own == doors.len() {
                complain(&mut complaint, ONLY_MYSELF);
            }
        }
        tokio::select! {
            () = task::sleep(PAUSE) => {}
            _ = leadership.changed() => {}
        }
    }
}

enum Found {
    Myself,
    Another,
}

async fn knock(broker: &Broker, door: &NodeAddress) -> Result<Found, PeerError> {
    let answer = broker.peers.meet(door, KNOCK_MAX).await?;
    if answer.identity == broker.peers.myself().identity {
        return Ok(Found::Myself);
    }
    if let Some(leader) = answer.leader.filter(|leader| leader.address != *door) {
        broker.peers.meet(&leader.address, KNOCK_MAX).await?;
    }
    Ok(Found::Another)
}

/// Whoever is not let in must know why, once.
fn complain(before: &mut String, sentence: &str) {
    if before != sentence {
        tracing::error!("{sentence}");
        sentence.clone_into(before);
    }
}
