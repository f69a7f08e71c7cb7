//! Floor 3: who is asking, and may they. There is no authorizer yet: every connection is `User:ANONYMOUS` and everything is allowed.

mod authorizer;
mod principal;

pub use authorizer::{Authorizer, Decision, OPERATIONS_NOT_ASKED, all_operations};
pub use principal::Principal;
