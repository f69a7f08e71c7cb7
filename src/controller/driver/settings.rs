//! The settings of this node that the active controller works by, under Kafka's names.

use std::collections::BTreeMap;

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

impl ControllerSettings {
    pub fn from_properties(properties: &BTreeMap<String, String>) -> ControllerSettings {
        let text = |name: &str| properties.get(name).map(|text| text.trim());
        let number = |name: &str, default: u64| {
            text(name).and_then(|text| text.parse::<u64>().ok()).filter(|number| *number > 0).unwrap_or(default)
        };
        ControllerSettings {
            session_timeout_ms: number("broker.session.timeout.ms", 5_000),
            balances_leaders: !text("auto.leader.rebalance.enable").is_some_and(|on| on.eq_ignore_ascii_case("false")),
            balance_interval_ms: number("leader.imbalance.check.interval.seconds", 300).saturating_mul(1_000),
            unclean_interval_ms: number("unclean.leader.election.interval.ms", 300_000),
        }
    }
}
