//! Histories that are told step by step, where chance would need too long to find them. Each is the one in which a certain protection
//! decides: with it nothing is lost, and without it the same checkers that look at every run find what was lost. Clients work all the
//! while, as in every run, and afterwards everything is mended and has to become whole.

mod elections;
mod histories;
mod scene;

pub use scene::{Scene, Stuck};

use crate::base::rules::Rule;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    LeaderWithoutFollowers,
    LaggardIsNextInLine,
    AckedAboveFollowersHighWatermark,
    LateFetchOfAnEarlierEpoch,
    PowerCutAfterAck,
    EligibleLosesItsMemory,
    JoinsWhileBehind,
    ProposalFromBeforeARestart,
}

/// What a run without a protection is convicted of: not that it gets stuck, but that somebody was told what does not hold.
pub const CHARGES: &[&str] =
    &["lost-write", "inconsistent-offset", "is told that this is out of range", "committed-offset-went-back"];

impl Script {
    pub const ALL: &[Script] = &[
        Script::LeaderWithoutFollowers,
        Script::LaggardIsNextInLine,
        Script::AckedAboveFollowersHighWatermark,
        Script::LateFetchOfAnEarlierEpoch,
        Script::PowerCutAfterAck,
        Script::EligibleLosesItsMemory,
        Script::JoinsWhileBehind,
        Script::ProposalFromBeforeARestart,
    ];

    /// The protection that decides.
    pub fn rule(self) -> Rule {
        match self {
            Script::LeaderWithoutFollowers => Rule::MinInSync,
            Script::LaggardIsNextInLine => Rule::LeaderFromInSync,
            Script::AckedAboveFollowersHighWatermark => Rule::CutsByEpoch,
            Script::LateFetchOfAnEarlierEpoch => Rule::ChecksLeaderEpoch,
            Script::PowerCutAfterAck => Rule::SyncsBeforeAck,
            Script::EligibleLosesItsMemory => Rule::UncleanRestartLeaves,
            Script::JoinsWhileBehind => Rule::JoinNeedsHighWatermark,
            Script::ProposalFromBeforeARestart => Rule::ChecksBrokerEpoch,
        }
    }

    pub fn min_in_sync(self) -> u64 {
        if self == Script::PowerCutAfterAck { 1 } else { 2 }
    }

    /// In place of what a seed chooses.
    pub fn settings(self) -> Vec<(&'static str, &'static str)> {
        let lag_ms = match self {
            Script::LeaderWithoutFollowers
            | Script::LaggardIsNextInLine
            | Script::PowerCutAfterAck
            | Script::EligibleLosesItsMemory
            | Script::ProposalFromBeforeARestart => "1500",
            Script::AckedAboveFollowersHighWatermark | Script::LateFetchOfAnEarlierEpoch | Script::JoinsWhileBehind => {
                "15000"
            }
        };
        let flush = match self {
            // With syncs nobody who was in sync forgets anything.
            Script::EligibleLosesItsMemory | Script::ProposalFromBeforeARestart => "os",
            _ => "sync",
        };
        vec![
            ("replica.lag.time.max.ms", lag_ms),
            ("broker.session.timeout.ms", "5000"),
            ("log.flush.offset.checkpoint.interval.ms", "60000"),
            ("flush.policy", flush),
        ]
    }

    /// # Errors
    /// When the cluster does not come to where the script needs it.
    pub async fn play(self, scene: &Scene) -> Result<(), Stuck> {
        match self {
            Script::LeaderWithoutFollowers => elections::leader_without_followers(scene).await,
            Script::LaggardIsNextInLine => elections::laggard_is_next_in_line(scene).await,
            Script::AckedAboveFollowersHighWatermark => histories::acked_above_followers_high_watermark(scene).await,
            Script::LateFetchOfAnEarlierEpoch => histories::late_fetch_of_an_earlier_epoch(scene).await,
            Script::PowerCutAfterAck => histories::power_cut_after_ack(scene).await,
            Script::EligibleLosesItsMemory => elections::eligible_loses_its_memory(scene).await,
            Script::JoinsWhileBehind => elections::joins_while_behind(scene).await,
            Script::ProposalFromBeforeARestart => elections::proposal_from_before_a_restart(scene).await,
        }
    }
}
