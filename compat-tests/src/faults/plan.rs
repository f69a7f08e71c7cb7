//! What goes wrong, in an order that a seed decides.

use std::time::Duration;

/// One fault; a partition stands for its leader at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    KillLeader(i32),
    KillFollower(i32),
    KillController,
    KillCoordinator,
    KillAll,
    /// Stopped as by SIGSTOP and continued: a leader that wakes up and may think that it still leads.
    PauseLeader(i32, Duration),
    /// SIGTERM and start, one node after the other.
    RollingRestart,
}

/// Faults from a seed; the same seed gives the same plan.
pub struct Plan {
    state: u64,
    partitions: i32,
}

impl Plan {
    pub fn new(seed: u64, partitions: i32) -> Plan {
        Plan { state: seed, partitions }
    }

    /// The next fault and how long the node stays away.
    pub fn draw(&mut self) -> (Fault, Duration) {
        let partition = i32::try_from(self.below(u64::from(self.partitions.unsigned_abs()))).unwrap_or(0);
        let fault = match self.below(20) {
            0..=6 => Fault::KillLeader(partition),
            7..=10 => Fault::KillFollower(partition),
            11..=13 => Fault::KillController,
            14..=16 => Fault::KillCoordinator,
            17 => Fault::KillAll,
            18 => Fault::PauseLeader(partition, Duration::from_millis(1000 + self.below(8000))),
            _ => Fault::RollingRestart,
        };
        // Mostly a quick restart, sometimes long enough for every timeout.
        let away = if self.below(8) == 0 { 6000 } else { 100 + self.below(2000) };
        (fault, Duration::from_millis(away))
    }

    /// How long all is well between faults.
    pub fn quiet(&mut self) -> Duration {
        Duration::from_millis(200 + self.below(800))
    }

    /// splitmix64.
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_plan_twice_and_every_fault_in_time() {
        let faults = |seed| -> Vec<_> {
            let mut plan = Plan::new(seed, 3);
            (0..200).map(|_| plan.draw()).collect()
        };
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
        let names: std::collections::BTreeSet<String> =
            faults(7).iter().map(|(fault, _)| format!("{fault:?}").split('(').next().unwrap_or("").into()).collect();
        assert_eq!(names.len(), 7, "{names:?}");
    }
}
