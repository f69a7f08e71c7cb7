//! What the lower floors ask of other nodes, over the lines between them: a follower's fetches, a leader's proposals, the controller's look
//! at a broker.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::api::Broker;
use crate::api::peers::active;
use crate::base::{BrokerId, ErrorCode, NodeAddress, TopicId};
use crate::controller::{BrokerProbe, Liveness};
use crate::metadata::BrokerRegistration;
use crate::peer::{PeerError, Peers, Purpose};
use crate::quorum::Quorum;
use crate::replica::{FetchFailed, IsrAnswers, IsrProposal, IsrProposals, ProposeFailed, ReplicaFetch};
use crate::wire::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use crate::wire::messages::{AlterPartitionRequest, AlterPartitionResponse, FetchRequest, FetchResponse};

/// How long a broker that is looked at may take.
const LOOK_MAX: Duration = Duration::from_millis(300);

/// How long a leader may take for a fetch beyond the wait that it was granted.
const FETCH_GRACE: Duration = Duration::from_secs(5);

/// How long the active controller may take for proposals.
const PROPOSE_MAX: Duration = Duration::from_secs(3);

/// The address of a broker's listener for brokers.
pub(super) fn address(broker: &BrokerRegistration, listener: &str) -> Option<NodeAddress> {
    let endpoint = broker.endpoint(listener).or_else(|| broker.endpoints.first())?;
    (!endpoint.host.is_empty()).then(|| NodeAddress::new(endpoint.host.clone(), endpoint.port))
}

/// A look at a broker: is the process that registered still there?
pub struct PeerProbe {
    pub peers: Peers,
    /// `inter.broker.listener.name`
    pub listener: String,
}

impl BrokerProbe for PeerProbe {
    fn look(&self, broker: Arc<BrokerRegistration>) -> BoxFuture<'static, Liveness> {
        let (peers, address) = (self.peers.clone(), address(&broker, &self.listener));
        Box::pin(async move {
            let Some(address) = address else { return Liveness::Silent };
            match peers.meet(&address, LOOK_MAX).await {
                Ok(answer) if answer.identity.incarnation == broker.incarnation => Liveness::Alive,
                Ok(_) | Err(PeerError::NobodyThere(_)) => Liveness::Gone,
                Err(_) => Liveness::Silent,
            }
        })
    }
}

/// A follower's way to leaders.
pub struct PeerFetch {
    pub peers: Peers,
    pub quorum: Quorum,
    /// `inter.broker.listener.name`
    pub listener: String,
}

impl ReplicaFetch for PeerFetch {
    fn fetch(&self, leader: BrokerId, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchFailed>> {
        let image = self.quorum.image();
        let address = image.broker(leader).and_then(|broker| address(broker, &self.listener));
        let peers = self.peers.clone();
        Box::pin(async move {
            let address = address.ok_or_else(|| FetchFailed(format!("no address of broker {leader} is known")))?;
            let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
            let answer = peers.call(&address, Purpose::Fetch(0), &request, wait + FETCH_GRACE).await;
            answer.map_err(|error| FetchFailed(error.to_string()))
        })
    }
}

/// A leader's way to the active controller.
pub struct PeerProposals {
    /// The broker does not live for the sake of its drivers.
    pub broker: Weak<Broker>,
}

impl IsrProposals for PeerProposals {
    fn propose(&self, proposals: Vec<IsrProposal>) -> BoxFuture<'static, IsrAnswers> {
        let broker = self.broker.upgrade();
        Box::pin(async move {
            let broker = broker.ok_or_else(|| ProposeFailed("the node is stopping".to_owned()))?;
            let request = request(&broker, &proposals);
            let asked = active::ask(&broker, &request, PROPOSE_MAX).await;
            let answer = asked.map_err(|error| ProposeFailed(error.to_string()))?;
            match ErrorCode(answer.error_code) {
                ErrorCode::NONE => proposals.iter().map(|proposal| verdict(&answer, proposal)).collect(),
                // The next controller, or the next registration, decides.
                code => Err(ProposeFailed(format!("the active controller answered error {}", code.code()))),
            }
        })
    }
}

fn request(broker: &Broker, proposals: &[IsrProposal]) -> AlterPartitionRequest {
    let mut topics: Vec<TopicData> = Vec::new();
    for IsrProposal { topic_id, partition, proposal, .. } in proposals {
        let isr = proposal
            .isr
            .iter()
            .map(|(id, epoch)| BrokerState::default().with_broker_id((*id).into()).with_broker_epoch(*epoch));
        let data = PartitionData::default()
            .with_partition_index(*partition)
            .with_leader_epoch(proposal.leader_epoch)
            .with_partition_epoch(proposal.partition_epoch)
            .with_new_isr_with_epochs(isr.collect());
        match topics.last_mut() {
            Some(last) if last.topic_id == topic_id.0 => last.partitions.push(data),
            _ => topics.push(TopicData::default().with_topic_id(topic_id.0).with_partitions(vec![data])),
        }
    }
    AlterPartitionRequest::default()
        .with_broker_id(broker.options.node_id.into())
        .with_broker_epoch(broker.broker_epoch())
        .with_topics(topics)
}

fn verdict(answer: &AlterPartitionResponse, proposal: &IsrProposal) -> Result<Result<(), ErrorCode>, ProposeFailed> {
    let topic = answer.topics.iter().filter(|topic| TopicId(topic.topic_id) == proposal.topic_id);
    let mut parts = topic.flat_map(|topic| &topic.partitions);
    let part = parts.find(|part| part.partition_index == proposal.partition);
    match part.map(|part| ErrorCode(part.error_code)) {
        Some(ErrorCode::NONE) => Ok(Ok(())),
        Some(code) => Ok(Err(code)),
        None => Err(ProposeFailed("the active controller left a partition out of its answer".to_owned())),
    }
}
