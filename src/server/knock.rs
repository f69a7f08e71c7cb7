//! A node that has no vote finds the quorum by knocking: it says hello to controllers it was told of until one of them knows who is
//! active, and then to that one, which takes it in as an observer.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Broker;
use crate::base::NodeAddress;
use crate::host::task;

/// How long one door is waited at.
const KNOCK_MAX: Duration = Duration::from_secs(1);

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(300);

/// Never ends: the quorum can be lost again.
pub async fn find_quorum(broker: Arc<Broker>, doors: Vec<NodeAddress>) {
    let mut leadership = broker.controller.quorum().leadership();
    loop {
        if leadership.borrow_and_update().leader.is_none() {
            for door in &doors {
                knock(&broker, door).await;
            }
        }
        tokio::select! {
            () = task::sleep(PAUSE) => {}
            _ = leadership.changed() => {}
        }
    }
}

async fn knock(broker: &Broker, door: &NodeAddress) {
    match broker.peers.meet(door, KNOCK_MAX).await {
        Ok(answer) => {
            if let Some(leader) = answer.leader.filter(|leader| leader.address != *door) {
                let met = broker.peers.meet(&leader.address, KNOCK_MAX).await;
                tracing::debug!(leader = leader.id, met = met.is_ok(), "knocked at the active controller");
            }
        }
        Err(error) => tracing::debug!(%error, "nobody at a controller's door"),
    }
}
