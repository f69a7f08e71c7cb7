//! Protections that a simulation can switch off one by one, to show that each is needed and that its checkers would see it missing.
//! In everything but tests they hold, and asking costs nothing.

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A protection. Those of replication that one partition's machine knows are in `replica::leader::Rules`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        /// All of them, in order.
        #[cfg(test)]
        pub const ALL: &[Rule] = &[$(Rule::$name,)*];
    };
}

rules! {
    /// `acks=all` waits for the high watermark.
    AckWaitsForHighWatermark,
    /// The high watermark waits for the whole in-sync set.
    CommitWaitsForInSync,
    /// ... and stands still below `min.insync.replicas`, as does an append with `acks=all`.
    MinInSync,
    /// Logs are cut where epochs say so, not at the high watermark.
    CutsByEpoch,
    /// A follower and its leader agree on the leader's epoch before a fetch counts.
    ChecksLeaderEpoch,
    /// A follower's next fetch says only what is on its device.
    SyncsBeforeFetch,
    /// `acks=all` waits for the leader's own device.
    SyncsBeforeAck,
    /// A batch that was appended already is not appended again.
    ChecksDuplicates,
    /// Leaders come from the in-sync set.
    LeaderFromInSync,
    /// A vote is on the device before it is told.
    VoteIsSynced,
    /// Metadata is on the device before it counts.
    MetadataIsSynced,
    /// Who restarted without a clean stop leaves the in-sync sets.
    UncleanRestartLeaves,
    /// A replica joins the in-sync set only when it has everything that is committed.
    JoinNeedsHighWatermark,
    /// Nobody is taken into the in-sync set for what an earlier run of its process had (KIP-903).
    ChecksBrokerEpoch,
    /// A decision on an older picture of the metadata is refused.
    DecisionsAreFresh,
    /// A coordinator answers when what it said is committed.
    GroupWaitsForHighWatermark,
}

#[cfg(not(test))]
#[inline(always)]
pub const fn holds(_: Rule) -> bool {
    true
}

#[cfg(test)]
pub use switches::{holds, switch_off};

#[cfg(test)]
mod switches {
    use std::cell::Cell;

    use super::Rule;

    thread_local! {
        static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
    }

    pub fn holds(rule: Rule) -> bool {
        OFF.get() != Some(rule)
    }

    /// On this thread, from now on.
    pub fn switch_off(rule: Rule) {
        OFF.set(Some(rule));
    }
}
