//! ListTransactions (key 66), v0 to v2 (KIP-664, v1 KIP-994 duration filter, v2 KIP-1152 pattern): none exist yet, so what is left is
//! telling the client which of its filters mean nothing.

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::wire::messages::{ListTransactionsRequest, ListTransactionsResponse};

/// The states that a transaction can be in, as Kafka spells them.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

pub async fn handle(
    _broker: &Arc<Broker>,
    _context: &RequestContext,
    request: ListTransactionsRequest,
) -> Result<ListTransactionsResponse, Refused> {
    let pattern = request.transactional_id_pattern.as_deref().unwrap_or("");
    if regex::Regex::new(pattern).is_err() {
        let error = ErrorCode::INVALID_REGULAR_EXPRESSION;
        return Ok(ListTransactionsResponse::default().with_error_code(error.code()));
    }
    let unknown = request.state_filters.into_iter().filter(|state| !STATES.contains(&state.as_str())).collect();
    Ok(ListTransactionsResponse::default().with_unknown_state_filters(unknown))
}
