use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::base::ErrorCode;
use crate::controller::decide::placement::place;

#[test]
fn fenced_brokers_hold_replicas_only_where_no_live_one_is_left() {
    let mut image = cluster(3);
    apply(&mut image, &[MetadataRecord::BrokerFenced { id: 2, fenced: true }]);
    let two = place(&image, 6, 2, 0).unwrap();
    assert!(two.iter().all(|replicas| !replicas.contains(&2)), "{two:?}");
    let three = place(&image, 6, 3, 0).unwrap();
    assert!(three.iter().all(|replicas| replicas[0] != 2 && replicas.contains(&2)), "{three:?}");
}

#[test]
fn a_cluster_of_fenced_brokers_takes_nothing() {
    let mut image = cluster(1);
    apply(&mut image, &[MetadataRecord::BrokerFenced { id: 1, fenced: true }]);
    assert_eq!(place(&image, 1, 1, 0).unwrap_err().code, ErrorCode::INVALID_REPLICATION_FACTOR);
    assert_eq!(place(&Image::empty(), 1, 1, 0).unwrap_err().code, ErrorCode::INVALID_REPLICATION_FACTOR);
}

proptest! {
    #[test]
    fn replicas_are_distinct_leaders_even_and_racks_spread(
        racks in prop::collection::vec(0..4u8, 1..9),
        factor in 1..5i16,
        count in 1..40usize,
        start in any::<usize>(),
    ) {
        let records: Vec<_> = (1..).zip(&racks)
            .map(|(id, rack)| MetadataRecord::Broker(broker(id, Some(&rack.to_string()))))
            .collect();
        let image = image_of(&records);
        let factor = factor.min(racks.len() as i16);
        let placed = place(&image, count, factor, start).unwrap();
        let kinds: BTreeSet<_> = racks.iter().collect();
        let mut leaders: BTreeMap<BrokerId, usize> = BTreeMap::new();
        for replicas in &placed {
            let distinct: BTreeSet<_> = replicas.iter().collect();
            prop_assert_eq!(distinct.len(), factor as usize);
            let used: BTreeSet<_> = replicas.iter().map(|id| racks[(*id - 1) as usize]).collect();
            prop_assert_eq!(used.len(), kinds.len().min(factor as usize));
            *leaders.entry(replicas[0]).or_default() += 1;
        }
        let most = leaders.values().max().copied().unwrap_or(0);
        prop_assert!(most <= count.div_ceil(racks.len()));
    }
}
