//! What the active controller goes by, of the settings of its node.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    /// `broker.session.timeout.ms`; ours is shorter than Kafka's 9000.
    pub session_timeout_ms: u64,
    /// `auto.leader.rebalance.enable`
    pub balances_leaders: bool,
    /// `leader.imbalance.check.interval.seconds`
    pub balance_interval_ms: u64,
    /// `unclean.leader.election.interval.ms`
    pub unclean_interval_ms: u64,
}

#[cfg(test)]
impl ControllerSettings {
    pub fn usual() -> ControllerSettings {
        ControllerSettings {
            session_timeout_ms: 5_000,
            balances_leaders: true,
            balance_interval_ms: 300_000,
            unclean_interval_ms: 300_000,
        }
    }
}
