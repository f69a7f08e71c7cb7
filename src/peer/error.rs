//! Why there is no answer of another node.

use crate::base::NodeAddress;
use crate::wire::client::AnswerError;
use crate::wire::encode::EncodeError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Nothing was sent: the machine says that no process listens there.
    #[error("nobody listens at {0}")]
    NobodyThere(NodeAddress),
    /// Nothing was sent.
    #[error("{address} cannot be reached: {why}")]
    Unreachable { address: NodeAddress, why: String },
    /// Nothing was sent: the other node does not want to talk to us.
    #[error("{address} refused this node: {sentence}")]
    Refused { address: NodeAddress, sentence: String },
    /// Whether the request was carried out is not known.
    #[error("the connection to {0} broke")]
    Lost(NodeAddress),
    /// Whether the request was or will be carried out is not known.
    #[error("{0} did not answer in time")]
    TimedOut(NodeAddress),
    #[error("an answer cannot be read: {0}")]
    Answer(#[from] AnswerError),
    #[error("a request cannot be written: {0}")]
    Request(#[from] EncodeError),
}

impl PeerError {
    /// The request did certainly not reach the other node.
    pub fn is_unsent(&self) -> bool {
        matches!(
            self,
            PeerError::NobodyThere(_)
                | PeerError::Unreachable { .. }
                | PeerError::Refused { .. }
                | PeerError::Request(_)
        )
    }
}
