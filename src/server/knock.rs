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

/// Never ends: the quorum can be lost again.
pub async fn find_quorum(broker: Arc<Broker>, doors: Vec<NodeAddress>) {
    let mut leadership = broker.controller.quorum().leadership();
    let mut complaint = String::new();
    loop {
        if leadership.borrow_and_update().leader.is_none() {
            for door in &doors {
                if let Err(error) = knock(&broker, door).await {
                    complain(&mut complaint, &error);
                }
            }
        }
        tokio::select! {
            () = task::sleep(PAUSE) => {}
            _ = leadership.changed() => {}
        }
    }
}

async fn knock(broker: &Broker, door: &NodeAddress) -> Result<(), PeerError> {
    let answer = broker.peers.meet(door, KNOCK_MAX).await?;
    if let Some(leader) = answer.leader.filter(|leader| leader.address != *door) {
        broker.peers.meet(&leader.address, KNOCK_MAX).await?;
    }
    Ok(())
}

/// Whoever is not let in must know why; that nobody is there yet is usual while a cluster starts.
fn complain(before: &mut String, error: &PeerError) {
    let sentence = error.to_string();
    if matches!(error, PeerError::Refused { .. }) && *before != sentence {
        tracing::error!("{sentence}");
        *before = sentence;
    }
}
