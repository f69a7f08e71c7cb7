//! One partition from its old state to its new one. Everything that changes a partition goes through here: a broker leaves or comes
//! back, a leader alters its in-sync set, a reassignment moves on, somebody asks for an election. What follows from the change, a new
//! leader, new epochs, eligible replicas, a completed reassignment, is worked out in [`Change::build`], in the order that Kafka's
//! KRaft controller has (KIP-497, KIP-841, KIP-966).
//!
//! Where we differ: Kafka lets the in-sync set become empty and keeps its last member among the eligible replicas. Here the last
//! member stays in the set while nobody leads, so that a stored set is never empty; such a member is eligible like the others.

use uuid::Uuid;

use super::rules::TopicRules;
use crate::base::BrokerId;
use crate::base::ids::NO_BROKER;
use crate::base::rules::{Rule, holds};
use crate::metadata::PartitionState;

/// How a leader is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// The leader stays if it can; else a member of the in-sync set, or an eligible replica when the set is empty.
    Online,
    /// The preferred replica if it is in sync, even when another one leads well.
    Preferred,
    /// Rather a leader that misses records than none.
    Unclean,
}

/// A change in the making. `isr`, `replicas` and the rest are where it shall lead to; they begin as what is.
pub struct Change<'a> {
    old: &'a PartitionState,
    rules: TopicRules,
    acceptable: &'a dyn Fn(BrokerId) -> bool,
    /// Eligible replicas before the change.
    elr: Vec<BrokerId>,
    /// In-sync replicas before the change, without those that are only kept so that the set is not empty.
    old_isr: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    pub replicas: Vec<BrokerId>,
    pub adding: Vec<BrokerId>,
    pub removing: Vec<BrokerId>,
    pub recovering: bool,
    pub election: Election,
    /// Lost what was not yet on its disk, or everything: it is not eligible any more.
    pub distrusted: Option<BrokerId>,
    /// The distrusted one must not lead although nobody else is left: others have records that it lacks.
    pub forsaken: bool,
    /// Directories of replicas that are new.
    pub directories: Vec<(BrokerId, Uuid)>,
}

/// A leader, and whether it was in sync or eligible.
struct Elected {
    leader: BrokerId,
    unclean: bool,
}

impl<'a> Change<'a> {
    /// `acceptable` says who may lead, as far as brokers and disks are concerned.
    pub fn of(old: &'a PartitionState, rules: TopicRules, acceptable: &'a dyn Fn(BrokerId) -> bool) -> Change<'a> {
        let only_kept = rules.keeps_eligible && !old.has_leader();
        let isr = if only_kept { Vec::new() } else { old.isr.clone() };
        let mut elr = old.elr.clone();
        if only_kept {
            elr.extend(&old.isr);
        }
        let unclean = rules.unclean_elections;
        Change {
            old,
            rules,
            acceptable,
            elr,
            old_isr: isr.clone(),
            isr,
            replicas: old.replicas.clone(),
            adding: old.adding.clone(),
            removing: old.removing.clone(),
            recovering: old.recovering,
            election: if unclean { Election::Unclean } else { Election::Online },
            distrusted: None,
            forsaken: false,
            directories: Vec::new(),
        }
    }

    /// Takes a broker out of the in-sync set.
    pub fn without(mut self, broker: BrokerId) -> Change<'a> {
        self.isr.retain(|member| *member != broker);
        self
    }

    /// Takes a broker out of the in-sync set and out of the eligible replicas.
    pub fn distrusting(self, broker: BrokerId) -> Change<'a> {
        Change { distrusted: Some(broker), ..self.without(broker) }
    }

    /// Rather nobody leads than the distrusted broker.
    pub fn forsaking(self) -> Change<'a> {
        Change { forsaken: true, ..self }
    }

    pub fn electing(self, election: Election) -> Change<'a> {
        Change { election, ..self }
    }

    /// The new state, or `None` when it is the old one.
    pub fn build(mut self) -> Option<PartitionState> {
        self.complete_reassignment();
        let mut elr = self.eligible();
        let elected = self.elect(&elr);
        let mut isr = std::mem::take(&mut self.isr);
        if elected.unclean {
            isr = vec![elected.leader];
            elr.clear();
        } else if elected.leader != NO_BROKER && !isr.contains(&elected.leader) {
            isr = vec![elected.leader];
            elr.retain(|member| *member != elected.leader);
        }
        if isr.is_empty() && !self.nobody_is_left(&elr) {
            let kept = self.kept(&elr);
            elr.retain(|member| *member != kept);
            isr.push(kept);
        }
        let mut new = PartitionState {
            isr,
            elr,
            last_known_elr: self.last_known_leader(elected.leader),
            leader: elected.leader,
            leader_epoch: self.old.leader_epoch,
            partition_epoch: self.old.partition_epoch,
            directories: self.all_directories(),
            replicas: self.replicas,
            adding: self.adding,
            removing: self.removing,
            recovering: self.recovering || elected.unclean,
        };
        let lost_replicas = self.old.replicas.iter().any(|replica| !new.replicas.contains(replica));
        if new.leader != self.old.leader || lost_replicas {
            new.leader_epoch = new.leader_epoch.saturating_add(1);
        }
        if new == *self.old {
            return None;
        }
        new.partition_epoch = new.partition_epoch.saturating_add(1);
        Some(new)
    }

    /// A reassignment is done when every new replica is in sync; one that lowers the replication factor also waits for those that
    /// stay, so that it does not shrink the in-sync set for nothing.
    fn complete_reassignment(&mut self) {
        if self.adding.is_empty() && self.removing.is_empty() {
            return;
        }
        let staying = |ids: &[BrokerId]| -> Vec<BrokerId> {
            ids.iter().copied().filter(|id| !self.removing.contains(id)).collect()
        };
        let (isr, replicas) = (staying(&self.isr), staying(&self.replicas));
        let all_in_sync = |ids: &[BrokerId]| ids.iter().all(|id| isr.contains(id));
        let lowers_factor = self.adding.len() < self.removing.len();
        if isr.is_empty() || !all_in_sync(&self.adding) || (lowers_factor && !all_in_sync(&replicas)) {
            return;
        }
        self.isr = isr;
        self.replicas = replicas;
        self.adding.clear();
        self.removing.clear();
    }

    /// Who left the in-sync set since it fell below its minimum, and so has everything below the high watermark, which does not move
    /// there.
    fn eligible(&self) -> Vec<BrokerId> {
        if !self.rules.keeps_eligible || self.isr.len() >= self.rules.min_isr {
            return Vec::new();
        }
        let stays =
            |id: &BrokerId| !self.isr.contains(id) && Some(*id) != self.distrusted && self.replicas.contains(id);
        let mut elr: Vec<BrokerId> = self.elr.iter().chain(&self.old_isr).copied().filter(stays).collect();
        elr.sort_unstable();
        elr.dedup();
        elr
    }

    fn elect(&self, elr: &[BrokerId]) -> Elected {
        let holds_everything = |id: BrokerId| {
            self.isr.contains(&id) || (self.isr.is_empty() && elr.contains(&id)) || !holds(Rule::LeaderFromInSync)
        };
        let may_lead = |id: BrokerId| holds_everything(id) && (self.acceptable)(id);
        let clean = |leader: BrokerId| Elected { leader, unclean: false };
        let preferred = self.replicas.first().copied().filter(|_| self.election == Election::Preferred);
        let in_order = preferred.into_iter().chain([self.old.leader]).chain(self.replicas.iter().copied());
        if let Some(leader) = in_order.into_iter().find(|id| may_lead(*id)) {
            return clean(leader);
        }
        match self.unclean().filter(|_| self.election == Election::Unclean) {
            Some(leader) => Elected { leader, unclean: true },
            None => clean(NO_BROKER),
        }
    }

    /// Whether no copy is left that can be counted on: then the set is empty, and only an unclean election, which somebody must ask
    /// for, goes on with one of the others.
    fn nobody_is_left(&self, elr: &[BrokerId]) -> bool {
        let others = self.replicas.iter().any(|id| Some(*id) != self.distrusted);
        elr.is_empty() && ((self.forsaken && others) || self.is_given_up())
    }

    fn is_given_up(&self) -> bool {
        self.old.isr.is_empty() && self.old.elr.is_empty() && !self.old.last_known_elr.is_empty()
    }

    /// The first of those that can lead; not the one that was given up, if there is another.
    fn unclean(&self) -> Option<BrokerId> {
        let given_up = |id: &BrokerId| self.is_given_up() && self.old.last_known_elr.contains(id);
        let mut able = self.replicas.iter().copied().filter(|id| (self.acceptable)(*id));
        let first = able.clone().next();
        able.find(|id| !given_up(id)).or(first)
    }

    /// Who stays in the in-sync set when it would be empty: the one whose copy is believed to be the best.
    fn kept(&self, elr: &[BrokerId]) -> BrokerId {
        let was_in_sync = self.old.isr.iter().find(|id| elr.contains(id));
        let eligible = was_in_sync.or(elr.first());
        let any_member = self.old.isr.iter().find(|id| self.replicas.contains(id));
        let anybody = self.replicas.first();
        eligible.or(any_member).or(anybody).copied().unwrap_or(NO_BROKER)
    }

    /// Kafka tells the last leader of a partition that has none in the place of the last known eligible replicas.
    fn last_known_leader(&self, leader: BrokerId) -> Vec<BrokerId> {
        if leader != NO_BROKER {
            return Vec::new();
        }
        if let Some(distrusted) = self.distrusted.filter(|_| self.forsaken) {
            return vec![distrusted];
        }
        if self.is_given_up() {
            return self.old.last_known_elr.clone();
        }
        if !self.rules.keeps_eligible {
            return Vec::new();
        }
        match self.old.leader {
            NO_BROKER => self.old.last_known_elr.clone(),
            leader => vec![leader],
        }
    }

    fn all_directories(&self) -> Vec<Uuid> {
        let unchanged = self.directories.is_empty() && self.replicas == self.old.replicas;
        if unchanged {
            return self.old.directories.clone();
        }
        let directory = |replica: &BrokerId| {
            let new = self.directories.iter().find(|(id, _)| id == replica).map(|(_, directory)| *directory);
            new.or_else(|| self.old.directory_of(*replica)).unwrap_or_default()
        };
        self.replicas.iter().map(directory).collect()
    }
}
