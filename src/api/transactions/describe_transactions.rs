//! DescribeTransactions (key 65), v0 (KIP-664): no transactional id is known yet.

use std::sync::Arc;

use crate::api::{Broker, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::wire::messages::describe_transactions_response::TransactionState;
use crate::wire::messages::{DescribeTransactionsRequest, DescribeTransactionsResponse};

pub async fn handle(
    _broker: &Arc<Broker>,
    _context: &RequestContext,
    request: DescribeTransactionsRequest,
) -> Result<DescribeTransactionsResponse, Refused> {
    let states = request.transactional_ids.into_iter().map(|id| {
        let error = if id.is_empty() { ErrorCode::INVALID_REQUEST } else { ErrorCode::TRANSACTIONAL_ID_NOT_FOUND };
        TransactionState::default().with_error_code(error.code()).with_transactional_id(id)
    });
    Ok(DescribeTransactionsResponse::default().with_transaction_states(states.collect()))
}
