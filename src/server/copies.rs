//! What a broker with damaged copies has to say to others, over the lines between nodes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::others::address;
use crate::api::Broker;
use crate::api::peers::{give_up_copies, look_at_copy};
use crate::base::{BrokerId, LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::host::task;
use crate::peer::Purpose;
use crate::replica::{CareFailed, CopyCare, CopySeen, GiveUpAnswers, GivenUp};
use crate::wire::private::PrivateApi;

/// How long the active controller may take.
const GIVE_UP_MAX: Duration = Duration::from_secs(5);

/// How long a leader may take to read some of its copy.
const LOOK_MAX: Duration = Duration::from_secs(30);

pub struct PeerCare {
    /// The broker does not live for the sake of its workers.
    pub broker: Weak<Broker>,
    /// `inter.broker.listener.name`
    pub listener: String,
}

fn stopping() -> CareFailed {
    CareFailed("the node is stopping".to_owned())
}

impl CopyCare for PeerCare {
    fn give_up(&self, copies: Vec<GivenUp>) -> BoxFuture<'static, GiveUpAnswers> {
        let broker = self.broker.upgrade();
        Box::pin(async move {
            let broker = broker.ok_or_else(stopping)?;
            let wanted = |copy: GivenUp| give_up_copies::WantedCopy {
                topic_id: copy.topic_id.0,
                partition: copy.partition,
                short: copy.short,
            };
            let wanted = copies.into_iter().map(wanted).collect();
            match task::timeout(GIVE_UP_MAX, give_up_copies::tell(&broker, wanted)).await {
                Some(Ok(outcomes)) => Ok(outcomes),
                Some(Err(refusal)) => Err(CareFailed(refusal.message.unwrap_or_default())),
                None => Err(CareFailed("the active controller does not answer".to_owned())),
            }
        })
    }

    fn look(
        &self,
        leader: BrokerId,
        (topic, partition): (TopicId, PartitionIndex),
        leader_epoch: LeaderEpoch,
        from: Offset,
    ) -> BoxFuture<'static, Result<CopySeen, CareFailed>> {
        let (broker, listener) = (self.broker.upgrade(), self.listener.clone());
        Box::pin(async move {
            let broker: Arc<Broker> = broker.ok_or_else(stopping)?;
            let address = broker.image().broker(leader).and_then(|broker| address(broker, &listener));
            let address = address.ok_or_else(|| CareFailed(format!("no address of broker {leader} is known")))?;
            let wanted = look_at_copy::Wanted { topic_id: topic.0, partition, leader_epoch, from };
            let body = serde_json::to_vec(&wanted).unwrap_or_default();
            let asked = broker.peers.private(&address, Purpose::Control, PrivateApi::LookAtCopy, &body, LOOK_MAX);
            let answer = asked.await.map_err(|error| CareFailed(error.to_string()))?;
            let told: look_at_copy::Told =
                serde_json::from_slice(&answer).map_err(|error| CareFailed(error.to_string()))?;
            told.result().map_err(|code| CareFailed(format!("broker {leader} answered error {}", code.code())))
        })
    }
}
