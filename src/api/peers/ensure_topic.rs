//! EnsureTopic (key 30003): a broker needs one of the coordinators' topics. The active controller makes it when it is not there.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::envelope::Outcome;
use crate::api::cluster::quorum_refusal;
use crate::api::{Broker, Refused};
use crate::base::ErrorCode;
use crate::controller::Refusal;
use crate::telemetry::Reason;
use crate::wire::envelope;
use crate::wire::private::RawBody;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub name: String,
}

/// Code 0: the topic is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub code: i16,
    pub message: Option<String>,
}

impl Told {
    fn of(result: Result<(), Refusal>) -> Told {
        match result {
            Ok(()) => Told { code: ErrorCode::NONE.code(), message: None },
            Err(refusal) => Told { code: refusal.code.code(), message: refusal.message },
        }
    }

    pub fn result(self) -> Result<(), Refusal> {
        match ErrorCode(self.code) {
            ErrorCode::NONE => Ok(()),
            code => Err(Refusal { code, message: self.message }),
        }
    }
}

pub async fn handle(broker: &Arc<Broker>, body: Bytes) -> Result<RawBody, Refused> {
    let wanted: Wanted = serde_json::from_slice(&body)
        .map_err(|error| Refused::because(Reason::MalformedRequest, format!("EnsureTopic cannot be read: {error}")))?;
    if !broker.is_active_controller() {
        return Ok(RawBody(envelope::seal(&Outcome::NotController, &[])));
    }
    let told = Told::of(here(broker, &wanted.name).await);
    let told = serde_json::to_vec(&told).unwrap_or_default();
    Ok(RawBody(envelope::seal(&Outcome::Answered { offset: broker.image().offset }, &told)))
}

/// On the active controller.
pub async fn here(broker: &Broker, name: &str) -> Result<(), Refusal> {
    match broker.controller.ensure_internal_topic(name).await {
        Ok(None) => Ok(()),
        Ok(Some(outcome)) => match outcome.result {
            // Somebody else made it meanwhile: then it is there.
            Err(refusal) if refusal.code != ErrorCode::TOPIC_ALREADY_EXISTS => Err(refusal),
            _ => Ok(()),
        },
        Err(error) => Err(quorum_refusal(&error)),
    }
}
