//! PeerHello (key 30000): the first request on every connection between nodes. Whoever belongs to this cluster, or to none yet, is let
//! in and may from then on do what only nodes may; everybody else is told why not.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::{Broker, Refused, RequestContext};
use crate::peer::{Hello, HelloAnswer, LeaderHint, Myself};
use crate::telemetry::{Reason, Refusal};
use crate::wire::private::RawBody;

pub async fn handle(broker: &Arc<Broker>, context: &RequestContext, body: Bytes) -> Result<RawBody, Refused> {
    let hello: Hello = serde_json::from_slice(&body)
        .map_err(|error| Refused::because(Reason::MalformedRequest, format!("PeerHello cannot be read: {error}")))?;
    let myself = broker.peers.myself();
    let refused = why_not(&hello, myself);
    match &refused {
        None => {
            let _ = context.connection.peer_node.set(hello.identity);
            broker.note_peer(&hello);
        }
        Some(sentence) => log(broker, context, sentence),
    }
    // Plain texts and numbers: nothing that JSON cannot say.
    Ok(RawBody(serde_json::to_vec(&answer(broker, refused)).unwrap_or_default().into()))
}

/// The sentence for a node that is not let in; it says what to do.
pub fn why_not(hello: &Hello, myself: &Myself) -> Option<String> {
    let (node, ours) = (hello.identity.node_id, myself.cluster_id());
    if !hello.cluster_id.is_empty() && !ours.is_empty() && hello.cluster_id != *ours {
        return Some(format!(
            "node {node} is of cluster {}, this is cluster {ours}: correct its controller.quorum.voters, or give it an empty log directory",
            hello.cluster_id
        ));
    }
    if node == myself.identity.node_id && hello.identity.incarnation != myself.identity.incarnation {
        return Some(format!("node.id {node} is used by two nodes of the cluster: give one of them another"));
    }
    None
}

fn answer(broker: &Broker, refused: Option<String>) -> HelloAnswer {
    let myself = broker.peers.myself();
    let leadership = broker.controller.quorum().leadership().borrow().clone();
    let leader = leadership.leader.zip(leadership.leader_address);
    HelloAnswer {
        refused,
        cluster_id: myself.cluster_id().to_string(),
        identity: myself.identity,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        leader: leader.map(|(id, address)| LeaderHint { id, address, term: leadership.term }),
    }
}

fn log(broker: &Broker, context: &RequestContext, sentence: &str) {
    let peer: SocketAddr = context.connection.peer;
    let refusal = Refusal {
        peer,
        listener: &context.connection.listener,
        client_id: context.client_id.as_deref(),
        software_name: None,
        software_version: None,
        api_key: Some(context.api_key),
        api_name: Some("PeerHello"),
        api_version: Some(context.api_version),
        reason: Reason::InvalidRequest,
        detail: &sentence,
    };
    broker.telemetry.refusals.refuse(&refusal, broker.host.clock.monotonic_ms());
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::peer::PeerIdentity;

    fn identity(node_id: i32, run: u128) -> PeerIdentity {
        PeerIdentity { node_id, incarnation: Uuid::from_u128(run) }
    }

    /// What node 9 of cluster `ours` says to the node.
    fn sentence(cluster_id: &str, identity: PeerIdentity) -> Option<String> {
        let myself = Myself::new(super::tests::identity(9, 1), "ours".into(), None);
        let hello = Hello { cluster_id: cluster_id.into(), identity, version: String::new(), quorum_address: None };
        why_not(&hello, &myself)
    }

    #[test]
    fn nodes_of_this_cluster_and_of_none_are_let_in() {
        assert_eq!(sentence("ours", identity(2, 2)), None);
        assert_eq!(sentence("", identity(77, 2)), None, "it comes for the first time");
        assert_eq!(sentence("ours", identity(9, 1)), None, "this node itself");
    }

    #[test]
    fn others_are_told_what_to_do() {
        assert!(sentence("theirs", identity(2, 2)).unwrap().contains("is of cluster theirs, this is cluster ours"));
        assert!(sentence("ours", identity(9, 2)).unwrap().contains("node.id 9 is used by two nodes"));
    }
}
