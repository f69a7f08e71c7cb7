//! Nodes that `controller.quorum.voters` names and that have no vote. The setting says whom a new quorum begins with and nothing later, so a
//! quorum that was begun with fewer, by a node that named only itself, looks safe in every file and has one copy of the metadata.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use crate::base::BrokerId;
use crate::base::ids::NO_BROKER;
use crate::host::task;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// While voters are replaced, one is missing for a moment.
const LOOKS_MIN: u32 = 5;

/// Who has no vote, and who has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Voteless {
    pub(super) missing: Vec<BrokerId>,
    pub(super) voters: Vec<BrokerId>,
}

/// Runs until it is dropped.
pub(super) async fn run(core: Arc<Core>) {
    let named: BTreeSet<BrokerId> = core.links.addresses.configured_ids().filter(|id| *id != NO_BROKER).collect();
    if named.is_empty() {
        return;
    }
    let (mut seen, mut looks) = (None, 0);
    loop {
        task::sleep(LOOK_EVERY).await;
        let now = core.voteless_of(&named);
        looks = if now == seen { looks + 1 } else { 1 };
        seen = now;
        if looks == LOOKS_MIN
            && let Some(found) = &seen
        {
            let before = core.voteless.lock().replace(found.clone());
            if before.as_ref() != Some(found) {
                tell(&named, found);
            }
        }
    }
}

fn tell(named: &BTreeSet<BrokerId>, Voteless { missing, voters }: &Voteless) {
    tracing::warn!(
        "controller.quorum.voters names {named:?}, but the voters of this cluster are {voters:?}, and {missing:?} without a vote only look on: \
         give each a vote with kafka-metadata-quorum.sh add-controller, or correct the setting"
    );
}

impl Core {
    /// `None` while no leader is known, or when everybody has a vote who should.
    fn voteless_of(&self, named: &BTreeSet<BrokerId>) -> Option<Voteless> {
        self.leadership.borrow().leader?;
        let metrics = self.metrics();
        let voters: Vec<BrokerId> = metrics.membership_config.voter_ids().collect();
        let missing: Vec<BrokerId> = named.iter().copied().filter(|id| !voters.contains(id)).collect();
        (!voters.is_empty() && !missing.is_empty()).then_some(Voteless { missing, voters })
    }
}
