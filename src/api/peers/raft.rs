//! Raft (key 30001): a message of another node's part of the metadata quorum. What it says is the quorum's own.

use std::sync::Arc;

use bytes::Bytes;

use crate::api::{Broker, Refused};
use crate::telemetry::Reason;
use crate::wire::private::RawBody;

pub async fn handle(broker: &Arc<Broker>, body: Bytes) -> Result<RawBody, Refused> {
    let answer = broker.controller.quorum().handle_rpc(body).await;
    answer.map(RawBody).map_err(|error| Refused::because(Reason::InvalidRequest, error.to_string()))
}
