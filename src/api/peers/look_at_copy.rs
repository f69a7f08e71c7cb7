//! LookAtCopy (key 30005): a follower asks a leader to read some of its own copy of a partition and to say whether it is sound. It does so
//! before it cuts its own damaged copy, and when what the leader sends cannot be used.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::{Broker, Refused, errors};
use crate::base::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId};
use crate::host::task;
use crate::replica::CopySeen;
use crate::telemetry::Reason;
use crate::wire::private::RawBody;

/// Bytes that are read for one question.
const BYTES_MAX: u64 = 32 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub topic_id: Uuid,
    pub partition: PartitionIndex,
    pub leader_epoch: LeaderEpoch,
    pub from: Offset,
}

/// Code 0: the leader has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub code: i16,
    pub sound_below: Offset,
    pub log_end: Offset,
    pub damaged_at: Option<Offset>,
}

impl Told {
    fn of(result: Result<CopySeen, ErrorCode>) -> Told {
        match result {
            Ok(CopySeen { sound_below, log_end, damaged_at }) => Told { code: 0, sound_below, log_end, damaged_at },
            Err(code) => Told { code: code.code(), sound_below: -1, log_end: -1, damaged_at: None },
        }
    }

    pub fn result(self) -> Result<CopySeen, ErrorCode> {
        let Told { code, sound_below, log_end, damaged_at } = self;
        match ErrorCode(code) {
            ErrorCode::NONE => Ok(CopySeen { sound_below, log_end, damaged_at }),
            code => Err(code),
        }
    }
}

pub async fn handle(broker: &Arc<Broker>, body: Bytes) -> Result<RawBody, Refused> {
    let wanted: Wanted = serde_json::from_slice(&body)
        .map_err(|error| Refused::because(Reason::MalformedRequest, format!("LookAtCopy cannot be read: {error}")))?;
    let told = Told::of(look(broker, wanted).await);
    Ok(RawBody(serde_json::to_vec(&told).unwrap_or_default().into()))
}

async fn look(broker: &Arc<Broker>, wanted: Wanted) -> Result<CopySeen, ErrorCode> {
    let topic = broker.partitions.topic_by_id(TopicId(wanted.topic_id)).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
    let partition = topic.partition(wanted.partition).cloned().ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let telemetry = broker.telemetry.clone();
    let looked = task::blocking(move || {
        let was_damaged = partition.is_damaged();
        let seen = partition.look_at_copy(wanted.leader_epoch, wanted.from, BYTES_MAX);
        if !was_damaged && partition.is_damaged() {
            telemetry.disk.damage_found();
        }
        seen
    });
    looked.await.map_err(|error| errors::partition(&error))
}
