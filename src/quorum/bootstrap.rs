//! The first start of a quorum of several. A voter with an empty log cannot know whether it is new or has lost everything, so it asks
//! the others: only when a majority has never agreed on anything, the quorum begins; when somebody has something, this node waits
//! to be given it, and has no vote until then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::core::Core;
use super::error::QuorumError;
use crate::base::{BrokerId, NodeAddress};
use crate::host::task;

/// The pause between two rounds of asking.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Runs until the quorum has begun, or this node was given what the others have.
pub(super) async fn run(core: Arc<Core>, voters: BTreeMap<BrokerId, NodeAddress>) {
    let mut is_told = false;
    while core.storage.is_joining() && core.condition().is_fresh {
        let others: Vec<BrokerId> = voters.keys().copied().filter(|id| *id != core.node_id).collect();
        let conditions = join_all(others.iter().map(|id| core.look(*id))).await;
        let has_any = conditions.iter().flatten().any(|condition| !condition.is_fresh);
        let fresh = conditions.iter().flatten().filter(|condition| condition.is_fresh).count();
        if !has_any && fresh + 1 > voters.len() / 2 {
            match core.begin(&voters).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "the metadata quorum cannot begin"),
            }
        } else if !is_told {
            is_told = true;
            let reason =
                if has_any { "the others have metadata; waiting to be given it" } else { "waiting for a majority" };
            tracing::info!(node_id = core.node_id, voters = ?BTreeSet::from_iter(voters.keys()), reason, "an empty metadata log");
        }
        task::sleep(ASK_AGAIN).await;
    }
}

impl Core {
    async fn begin(&self, voters: &BTreeMap<BrokerId, NodeAddress>) -> Result<(), QuorumError> {
        let storage = self.storage.clone();
        task::blocking(move || storage.promise(|hard| hard.joining = false)).await?;
        // An error says that it has begun already.
        let _ = self.raft().initialize(voters.clone()).await;
        Ok(())
    }
}
