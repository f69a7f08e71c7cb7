use proptest::prelude::*;

use super::super::machine::Applied;
use super::super::store::{edits, load_image, path, read_image};
use super::super::types::log_id;
use super::*;
use crate::host::KvEdit;
use crate::metadata::{BrokerRegistration, ResourceKind};

fn image_of(records: &[MetadataRecord]) -> Image {
    let mut image = Image::empty();
    for record in records {
        // What does not fit is what a quorum would have refused.
        let mut next = image.clone();
        if next.apply(image.offset + 1, record).is_ok() {
            image = next;
        }
    }
    image
}

/// An image and a place in the log.
fn applied(image: &Image) -> Applied {
    Applied { image: Arc::new(image.clone()), log_id: Some(log_id(1, 7)), ..Applied::default() }
}

fn image_in(store: &dyn KeyValueStore) -> Option<Image> {
    read_image(store).unwrap().map(|held| Image::clone(&held.image))
}

fn store() -> (Arc<SimKv>, Arc<crate::host::sim::SimKvStore>) {
    let kv: Arc<SimKv> = Arc::default();
    let store = kv.open(&path(Path::new("/d"))).unwrap();
    (kv, store)
}

fn small_image() -> Image {
    image_of(&[MetadataRecord::Cluster { cluster_id: "c".into() }, topic(1), topic(2), bulky(1, 10)])
}

#[test]
fn a_store_gives_back_its_image() {
    let (kv, store) = store();
    let image = small_image();
    assert_eq!(read_image(store.as_ref()).unwrap(), None);
    store.apply(edits(None, &applied(&image))).unwrap();
    assert_eq!(load_image(Path::new("/d"), &opener(&kv)), Some(applied(&image)));
}

#[test]
fn a_store_that_is_damaged_gives_nothing() {
    let (kv, store) = store();
    store.apply(edits(None, &applied(&small_image()))).unwrap();
    store.corrupt(|trees| {
        let value = trees.get_mut("topics").unwrap().values_mut().next().unwrap();
        value[20] ^= 1;
    });
    assert_eq!(load_image(Path::new("/d"), &opener(&kv)), None);
    kv.damage();
    assert_eq!(load_image(Path::new("/d"), &opener(&kv)), None);
    let panicking: StoreOpener = Arc::new(|_| panic!("as sled may"));
    assert_eq!(load_image(Path::new("/d"), &panicking), None);
}

#[test]
fn a_write_that_did_not_finish_is_noticed() {
    let old = small_image();
    let mut new = old.clone();
    for (offset, record) in [(10, topic(3)), (11, MetadataRecord::TopicRemoved { id: TopicId(Uuid::from_u128(1)) })] {
        new.apply(offset, &record).unwrap();
    }
    let all = edits(Some(&old), &applied(&new)).len();
    for count in 0..=all {
        let (_, store) = store();
        store.apply(edits(None, &applied(&old))).unwrap();
        store.cut_after(count);
        let _ = store.apply(edits(Some(&old), &applied(&new)));
        let read = read_image(store.as_ref()).ok().flatten().map(|held| Image::clone(&held.image));
        let allowed = [Some(&old), Some(&new), None];
        assert!(allowed.contains(&read.as_ref()), "{count} edits of {all}");
        if count == all {
            assert_eq!(read.as_ref(), Some(&new));
        }
    }
}

#[tokio::test]
async fn a_long_start_reads_the_store_and_the_log_behind_it() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    for number in 0..30 {
        quorum.propose(vec![bulky(number, 100 * 1024)]).await.unwrap();
    }
    quorum.close().await.unwrap();
    let held = load_image(&file(""), &opener(&machine.kv)).expect("written at the close");
    assert_eq!(held.image.offset, quorum.image().offset);
    // A store that knows more than the log ever held shows that it is read.
    let store = machine.kv.open(&path(&file(""))).unwrap();
    let mut changed = Image::clone(&held.image);
    changed.apply(held.image.offset, &topic(77)).unwrap();
    let changed = Applied { image: Arc::new(changed), ..held.clone() };
    store.apply(edits(Some(&held.image), &changed)).unwrap();
    let quorum = machine.open().await.unwrap();
    assert_eq!(names(&quorum.image()), ["topic-77"]);
    quorum.propose(vec![topic(78)]).await.unwrap();
    drop(quorum);
    for damage in [SimKv::damage, SimKv::wipe] {
        damage(&machine.kv);
        assert_eq!(names(&machine.open().await.unwrap().image()), ["topic-78"], "rebuilt from the log");
    }
}

#[tokio::test]
async fn a_store_ahead_of_the_log_shows_that_the_log_lost_records() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    for number in 0..30 {
        quorum.propose(vec![bulky(number, 100 * 1024)]).await.unwrap();
    }
    quorum.close().await.unwrap();
    let store = machine.kv.open(&path(&file(""))).unwrap();
    let held = load_image(&file(""), &opener(&machine.kv)).unwrap();
    let index = held.log_id.unwrap().index;
    let ahead = Applied { log_id: Some(log_id(1, index + 5)), ..held.clone() };
    store.apply(edits(Some(&held.image), &ahead)).unwrap();
    assert!(matches!(machine.open().await, Err(QuorumError::Incomplete { .. })));
}

/// Records over few names, so that they meet.
fn any_record() -> impl Strategy<Value = MetadataRecord> {
    let id = |number: u8| TopicId(Uuid::from_u128(u128::from(number)));
    let states = prop::collection::vec((0..3i32).prop_map(|leader| PartitionState::new(vec![leader], vec![])), 0..4);
    let resource = (0..3u8).prop_map(|name| ConfigResource::new(ResourceKind::Topic, format!("t{name}")));
    prop_oneof![
        (0..4u8, states.clone()).prop_map(move |(number, partitions)| MetadataRecord::Topic {
            id: id(number),
            name: format!("t{number}"),
            partitions
        }),
        (0..4u8, 0..4i32, states).prop_map(move |(number, first, partitions)| MetadataRecord::PartitionsAdded {
            topic_id: id(number),
            first,
            partitions
        }),
        (0..4u8).prop_map(move |number| MetadataRecord::TopicRemoved { id: id(number) }),
        (0..3i32).prop_map(|leader| MetadataRecord::LeadershipRenewed { leader }),
        (resource, 0..2u8, prop::option::of("[a-c]")).prop_map(|(resource, name, value)| MetadataRecord::Config {
            resource,
            name: format!("k{name}"),
            value
        }),
        (0..3u8, 0..3i16).prop_map(|(name, level)| MetadataRecord::Feature { name: format!("f{name}"), level }),
        (0..2000i64).prop_map(|next| MetadataRecord::ProducerIds { broker: 1, next }),
        (0..3i32, any::<bool>()).prop_map(|(id, fenced)| MetadataRecord::Broker(BrokerRegistration {
            id,
            incarnation: Uuid::nil(),
            epoch: 1,
            endpoints: vec![],
            rack: None,
            directories: vec![],
            fenced,
            ..BrokerRegistration::default()
        })),
        (0..3i32).prop_map(|id| MetadataRecord::BrokerRemoved { id }),
        Just(MetadataRecord::Cluster { cluster_id: "c".into() }),
    ]
}

proptest! {
    #[test]
    fn an_image_is_the_same_from_its_records_from_a_store_and_from_a_changed_store(
        first in prop::collection::vec(any_record(), 0..30),
        second in prop::collection::vec(any_record(), 0..30),
    ) {
        let old = image_of(&first);
        let mut new = old.clone();
        for record in &second {
            let mut next = new.clone();
            if next.apply(new.offset + 1, record).is_ok() {
                new = next;
            }
        }
        let mut again = image_of(&new.to_records());
        again.offset = new.offset;
        prop_assert_eq!(&again, &new);
        let (_, store) = store();
        store.apply(edits(None, &applied(&old))).unwrap();
        prop_assert_eq!(image_in(store.as_ref()), Some(old.clone()));
        let changes = edits(Some(&old), &applied(&new));
        let clears = changes.iter().any(|edit| matches!(edit, KvEdit::Clear { .. }));
        prop_assert!(!clears);
        store.apply(changes).unwrap();
        prop_assert_eq!(image_in(store.as_ref()), Some(new));
    }
}
