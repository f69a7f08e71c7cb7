//! Floor 3: who is asking, and may they. There is no authorizer yet: every connection is `User:ANONYMOUS` and everything is allowed.

mod principal;

pub use principal::Principal;
