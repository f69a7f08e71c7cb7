//! A node that nobody speaks to, though the others have a leader: the quorum looks for it elsewhere, because its address changed or because
//! another process runs under its id. From its own log alone nobody could tell.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::rpc::{Answer, Call};
use crate::base::{BrokerId, NodeAddress};
use crate::host::task;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A leader that speaks to this node has done so long before.
const LOOKS_MIN: u32 = 5;

const ASK_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs until it is dropped.
pub(super) async fn run(core: Arc<Core>) {
    let mut looks = 0;
    loop {
        task::sleep(LOOK_EVERY).await;
        if !core.is_unreached() {
            looks = 0;
            continue;
        }
        // None may only be slow to answer.
        let Some(Found { leader, knows }) = core.find_leader().await else { continue };
        looks += 1;
        if looks >= LOOKS_MIN && core.is_unreached() {
            let found = Some((leader, core.ask_for_my_address(knows).await));
            let mut told = core.unreached.lock();
            if *told != found {
                *told = found.clone();
                drop(told);
                tell(core.node_id, leader, found.and_then(|(_, known)| known));
            }
        }
    }
}

/// Who leads, and who can say where the quorum looks for this node.
struct Found {
    leader: BrokerId,
    knows: BrokerId,
}

fn tell(node: BrokerId, leader: BrokerId, known: Option<NodeAddress>) {
    match known {
        known if leader == node => {
            let at = known.map(|address| format!(" at {address}")).unwrap_or_default();
            tracing::warn!(
                "another process runs as node {node} and leads the metadata quorum{at}: this one is given nothing; stop one of them"
            );
        }
        Some(address) => tracing::warn!(
            "node {leader} leads the metadata quorum but does not reach this node: the quorum knows node {node} at {address}; correct the \
             address, or stop the other process that runs as node {node}"
        ),
        None => tracing::warn!(
            "node {leader} leads the metadata quorum but does not reach this node: the quorum does not know node {node} yet"
        ),
    }
}

impl Core {
    /// No leader is heard, and this node is none.
    fn is_unreached(&self) -> bool {
        !Core::is_leading(&self.metrics()) && self.hearing.live(self.timing.election_max() + LOOK_EVERY).is_none()
    }

    async fn find_leader(&self) -> Option<Found> {
        let metrics = self.metrics();
        let voters = metrics.membership_config.voter_ids().chain(self.links.addresses.configured_ids());
        let others: BTreeSet<BrokerId> = voters.filter(|id| *id != self.node_id).collect();
        let mut twin = None;
        for id in others {
            let Some(condition) = self.look(id).await else { continue };
            if condition.is_leader {
                return Some(Found { leader: id, knows: id });
            }
            // That is not this process, which does not lead.
            if condition.hears == Some(self.node_id) {
                twin = Some(Found { leader: self.node_id, knows: id });
            }
        }
        twin
    }

    async fn ask_for_my_address(&self, of: BrokerId) -> Option<NodeAddress> {
        let address = self.address_of(&self.metrics(), of)?;
        let call = Call::AddressOf(self.node_id);
        let asked = self.links.call(of, &address, &call);
        match task::timeout(ASK_TIMEOUT, asked).await {
            Some(Ok(Answer::AddressOf(address))) => address,
            _ => None,
        }
    }
}
