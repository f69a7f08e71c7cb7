//! GiveUpCopies (key 30004): a broker found copies of its own that are not what was written. The active controller sees to it that nobody
//! counts on them, and that somebody else leads.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::active::hand_over;
use super::envelope::Outcome;
use crate::api::brokers::check_speaker;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::{BrokerId, ErrorCode, PartitionIndex, TopicId};
use crate::controller::Refusal;
use crate::controller::decide::give_up::{GiveUp, GiveUpOutcomes, OwnCopy};
use crate::telemetry::Reason;
use crate::wire::envelope::seal;
use crate::wire::private::{PrivateApi, RawBody};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub broker: BrokerId,
    pub broker_epoch: i64,
    pub copies: Vec<WantedCopy>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedCopy {
    pub topic_id: Uuid,
    pub partition: PartitionIndex,
    pub short: bool,
}

/// Code 0: see `copies`, which has an entry for each that was asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub code: i16,
    pub copies: Vec<ToldCopy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldCopy {
    pub code: i16,
    pub partition_epoch: i32,
}

impl Told {
    fn of(result: Result<GiveUpOutcomes, ErrorCode>) -> Told {
        let copy = |outcome| match outcome {
            Ok(partition_epoch) => ToldCopy { code: ErrorCode::NONE.code(), partition_epoch },
            Err(code) => ToldCopy { code: ErrorCode::code(code), partition_epoch: -1 },
        };
        match result {
            Ok(outcomes) => Told { code: ErrorCode::NONE.code(), copies: outcomes.into_iter().map(copy).collect() },
            Err(code) => Told { code: code.code(), copies: Vec::new() },
        }
    }

    fn result(self) -> Result<GiveUpOutcomes, ErrorCode> {
        let copy = |copy: ToldCopy| match ErrorCode(copy.code) {
            ErrorCode::NONE => Ok(copy.partition_epoch),
            code => Err(code),
        };
        match ErrorCode(self.code) {
            ErrorCode::NONE => Ok(self.copies.into_iter().map(copy).collect()),
            code => Err(code),
        }
    }
}

pub async fn handle(broker: &Arc<Broker>, context: &RequestContext, body: Bytes) -> Result<RawBody, Refused> {
    let wanted: Wanted = serde_json::from_slice(&body)
        .map_err(|error| Refused::because(Reason::MalformedRequest, format!("GiveUpCopies cannot be read: {error}")))?;
    if !broker.is_active_controller() {
        return Ok(RawBody(seal(&Outcome::NotController, &[])));
    }
    let result = match check_speaker(context, wanted.broker) {
        Ok(()) => here(broker, wanted).await,
        Err(code) => Err(code),
    };
    let told = serde_json::to_vec(&Told::of(result)).unwrap_or_default();
    Ok(RawBody(seal(&Outcome::Answered { offset: broker.image().offset }, &told)))
}

/// On the active controller.
async fn here(broker: &Broker, wanted: Wanted) -> Result<GiveUpOutcomes, ErrorCode> {
    let copy =
        |copy: WantedCopy| OwnCopy { topic_id: TopicId(copy.topic_id), partition: copy.partition, short: copy.short };
    let asked = GiveUp {
        broker: wanted.broker,
        broker_epoch: wanted.broker_epoch,
        copies: wanted.copies.into_iter().map(copy).collect(),
    };
    broker.controller.give_up(asked).await.unwrap_or_else(|error| Err(quorum_refusal(&error).code))
}

/// Tells the active controller, wherever that is. One outcome for each copy, in their order.
pub async fn tell(broker: &Arc<Broker>, copies: Vec<WantedCopy>) -> Result<GiveUpOutcomes, Refusal> {
    let count = copies.len();
    let wanted = Wanted { broker: broker.options.node_id, broker_epoch: broker.broker_epoch(), copies };
    let result = if broker.is_active_controller() {
        here(broker, wanted).await
    } else {
        let body = serde_json::to_vec(&wanted).unwrap_or_default();
        let answer = hand_over(broker, PrivateApi::GiveUpCopies, body.into(), true).await?;
        let told: Told = serde_json::from_slice(&answer)
            .map_err(|error| Refusal::new(ErrorCode::REQUEST_TIMED_OUT, error.to_string()))?;
        told.result()
    };
    match result {
        Ok(outcomes) if outcomes.len() == count => Ok(outcomes),
        Ok(_) => Err(Refusal::new(ErrorCode::REQUEST_TIMED_OUT, "an answer with too few outcomes")),
        Err(code) => Err(Refusal::new(code, format!("the active controller answered error {}", code.code()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_the_way() {
        for result in
            [Ok(vec![Ok(7), Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE)]), Err(ErrorCode::STALE_BROKER_EPOCH)]
        {
            let told = serde_json::to_vec(&Told::of(result.clone())).unwrap();
            assert_eq!(serde_json::from_slice::<Told>(&told).unwrap().result(), result);
        }
    }
}
