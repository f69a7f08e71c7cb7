//! Looking at a broker whose connection broke. The answer of the network is quicker than any session: a machine that refuses the
//! connection has no such process any more.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::metadata::BrokerRegistration;

/// What a look at a broker showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The same incarnation answered.
    Alive,
    /// The connection was refused, or somebody else answered: the incarnation is no more.
    Gone,
    /// No answer in time. It may be slow; its session decides.
    Silent,
}

/// Connects to a broker and asks for its incarnation. An answer comes within some 300 ms.
pub trait BrokerProbe: Send + Sync {
    fn look(&self, broker: Arc<BrokerRegistration>) -> BoxFuture<'static, Liveness>;
}
