//! Where the nodes are. The metadata knows an address of each node, and another one may be configured: a voter was replaced elsewhere, or
//! was given another address, and the one or the other is out of date. The one that answered last is used, and after a call that failed the
//! other.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::base::{BrokerId, NodeAddress};
use crate::host::task::{Moment, moment};

/// A call that is given up later than this has failed; earlier ones are not needed any more.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(250);

pub(super) struct Addresses {
    me: (BrokerId, NodeAddress),
    configured: BTreeMap<BrokerId, NodeAddress>,
    /// Of those that were called.
    ways: Mutex<BTreeMap<BrokerId, Way>>,
}

/// Of the addresses of one node.
struct Way {
    next: NodeAddress,
    answered: Option<NodeAddress>,
}

impl Addresses {
    pub(super) fn new(me: (BrokerId, NodeAddress), configured: BTreeMap<BrokerId, NodeAddress>) -> Addresses {
        Addresses { me, configured, ways: Mutex::default() }
    }

    pub(super) fn configured_ids(&self) -> impl Iterator<Item = BrokerId> {
        self.configured.keys().copied()
    }

    /// Where to look for a node next. `known` is what the metadata says.
    pub(super) fn of(&self, id: BrokerId, known: Option<&NodeAddress>) -> Option<NodeAddress> {
        if id == self.me.0 {
            return Some(self.me.1.clone());
        }
        let configured = self.configured.get(&id);
        let first = known.or(configured)?;
        let is_one = |address: &&NodeAddress| Some(*address) == known || Some(*address) == configured;
        let ways = self.ways.lock();
        Some(ways.get(&id).map(|way| &way.next).filter(is_one).unwrap_or(first).clone())
    }

    /// The way of one call.
    pub(super) fn attempt<'a>(&'a self, id: BrokerId, known: &'a NodeAddress) -> Attempt<'a> {
        let address = self.of(id, Some(known)).unwrap_or_else(|| known.clone());
        Attempt { addresses: self, id, known, address, begun: moment(), is_over: false }
    }

    fn note_answer(&self, id: BrokerId, address: &NodeAddress, has_two: bool) {
        let mut ways = self.ways.lock();
        let way = ways.entry(id).or_insert_with(|| Way { next: address.clone(), answered: None });
        if way.next == *address && way.answered.as_ref() == Some(address) {
            return;
        }
        way.next = address.clone();
        let before = way.answered.replace(address.clone());
        if before.as_ref() != Some(address) && (has_two || before.is_some()) {
            drop(ways);
            tracing::info!(node = id, %address, "of the addresses of a node, configured and in the metadata, this one answers");
        }
    }

    fn note_failure(&self, id: BrokerId, known: &NodeAddress, address: &NodeAddress) {
        let Some(configured) = self.configured.get(&id).filter(|configured| *configured != known) else { return };
        let mut ways = self.ways.lock();
        let way = ways.entry(id).or_insert_with(|| Way { next: address.clone(), answered: None });
        // Another call may have gone on already, to an address that still is one.
        let has_gone_on = way.next != *address && (way.next == *known || way.next == *configured);
        if !has_gone_on {
            way.next = if address == known { configured.clone() } else { known.clone() };
        }
    }
}

/// A call to a node. Dropped without an answer it has failed, unless that was soon.
pub(super) struct Attempt<'a> {
    addresses: &'a Addresses,
    id: BrokerId,
    known: &'a NodeAddress,
    pub(super) address: NodeAddress,
    begun: Moment,
    is_over: bool,
}

impl Attempt<'_> {
    pub(super) fn end(mut self, was_answered: bool) {
        self.is_over = true;
        if was_answered {
            let configured = self.addresses.configured.get(&self.id);
            let has_two = configured.is_some_and(|configured| configured != self.known);
            self.addresses.note_answer(self.id, &self.address, has_two);
        } else {
            self.addresses.note_failure(self.id, self.known, &self.address);
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over && moment().duration_since(self.begun) >= GIVEN_UP_AFTER {
            self.addresses.note_failure(self.id, self.known, &self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> NodeAddress {
        NodeAddress::new(name, 9093)
    }

    fn addresses() -> Addresses {
        Addresses::new((1, at("me")), BTreeMap::from([(1, at("wrong")), (2, at("configured")), (3, at("same"))]))
    }

    #[test]
    fn of_two_addresses_the_one_that_answered_is_used_until_a_call_fails() {
        let (addresses, known) = (addresses(), at("known"));
        let next = || addresses.of(2, Some(&known)).unwrap();
        assert_eq!(next(), known, "the metadata is newer than a file");
        addresses.attempt(2, &known).end(false);
        assert_eq!(next(), at("configured"));
        addresses.attempt(2, &known).end(true);
        assert_eq!(next(), at("configured"));
        addresses.attempt(2, &known).end(false);
        assert_eq!(next(), known);
        addresses.attempt(2, &at("newer")).end(false);
        assert_eq!(addresses.of(2, Some(&at("newer"))), Some(at("configured")));
    }

    #[test]
    fn a_node_that_answers_is_not_left_for_an_address_that_the_metadata_learns() {
        let addresses = addresses();
        addresses.attempt(3, &at("same")).end(true);
        assert_eq!(addresses.of(3, Some(&at("newer"))), Some(at("same")));
        addresses.attempt(3, &at("newer")).end(false);
        assert_eq!(addresses.of(3, Some(&at("newer"))), Some(at("newer")));
    }

    #[test]
    fn calls_that_fail_together_take_one_step() {
        let (addresses, known) = (addresses(), at("known"));
        let (one, other) = (addresses.attempt(2, &known), addresses.attempt(2, &known));
        one.end(false);
        other.end(false);
        assert_eq!(addresses.of(2, Some(&known)), Some(at("configured")));
    }

    #[test]
    fn a_node_with_one_address_stays_there() {
        let addresses = addresses();
        for (id, known) in [(3, at("same")), (4, at("known"))] {
            addresses.attempt(id, &known).end(false);
            assert_eq!(addresses.of(id, Some(&known)), Some(known));
        }
        assert_eq!(addresses.of(2, None), Some(at("configured")));
        assert_eq!(addresses.of(5, None), None);
        assert_eq!(addresses.of(1, Some(&at("known"))), Some(at("me")), "a node knows where it is");
    }
}
