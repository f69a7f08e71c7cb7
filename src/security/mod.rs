//! Floor 3: who is asking, and may they. There is no authorizer yet: every connection is `User:ANONYMOUS` and everything is allowed.

mod authorizer;
mod principal;

pub use authorizer::{Authorizer, Decision};
pub use principal::Principal;
