//! Requests that another controller was asked for, and of which it is not known whether it carried them out. They must not be decided
//! again: what was done already would be refused then. Whoever answers them here in the usual way is told that time ran out.

use crate::quorum::QuorumError;

tokio::task_local! {
    static DOUBT: ();
}

/// Does `work` in doubt: every change that it asks the controller for is refused with [`QuorumError::TimedOut`].
pub async fn doubting<T>(work: impl Future<Output = T>) -> T {
    DOUBT.scope((), work).await
}

/// # Errors
/// In doubt.
pub(super) fn must_be_certain() -> Result<(), QuorumError> {
    DOUBT.try_with(|()| ()).map_or(Ok(()), |()| Err(QuorumError::TimedOut))
}
