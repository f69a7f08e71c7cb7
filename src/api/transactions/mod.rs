//! Transactions as far as they can be asked about without a transaction coordinator: there are none. Tools and user interfaces call
//! these at start and must get an answer.

pub mod describe_transactions;
pub mod list_transactions;
