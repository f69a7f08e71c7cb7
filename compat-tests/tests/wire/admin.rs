//! What user interfaces and exporters ask at their start. Trap 48.

use compat_tests::Broker;
use compat_tests::wire::{Body, DESCRIBE_ACLS, DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS, LIST_GROUPS};

use crate::calls::{NONE, topic};

const SECURITY_DISABLED: i16 = 54;

#[test]
fn acls_are_answered_as_switched_off() {
    let broker = Broker::start();
    let any = Body::new().i8(1).null_string().i8(1).null_string().null_string().i8(1).i8(1);
    let mut answer = broker.connect().call(DESCRIBE_ACLS, 1, &any);
    answer.i32();
    assert_eq!(answer.i16(), SECURITY_DISABLED);
    assert!(answer.string().is_some(), "with a message");
    assert_eq!(answer.i32(), 0);
    answer.end();
}

#[test]
fn the_cluster_describes_itself() {
    let broker = Broker::start();
    let mut answer = broker.connect().call(DESCRIBE_CLUSTER, 0, &Body::new().bool(false).tags());
    answer.i32();
    assert_eq!((answer.i16(), answer.compact_string()), (NONE, None));
    assert!(answer.compact_string().is_some_and(|id| !id.is_empty()));
    let controller = answer.i32();
    let brokers = answer.compact_array(|r| {
        let (id, host, port) = (r.i32(), r.compact_string().expect("a host"), r.i32());
        r.compact_string();
        r.tags();
        (id, format!("{host}:{port}"))
    });
    assert_eq!(brokers, [(controller, broker.address())], "at the address that we reached it by");
}

#[test]
fn log_dirs_tell_the_size_of_a_partition() {
    let broker = Broker::start();
    let name = topic(&broker, "sized", 2, &[]);
    let body = Body::new().i32(1).string(&name).i32(2).i32(0).i32(1);
    let mut answer = broker.connect().call(DESCRIBE_LOG_DIRS, 1, &body);
    answer.i32();
    let dirs = answer.array(|r| {
        let error = r.i16();
        assert!(r.string().is_some_and(|path| path.starts_with('/')));
        let topics = r.array(|r| (r.string(), r.array(|r| (r.i32(), r.i64(), r.i64(), r.bool()))));
        (error, topics)
    });
    let sizes = vec![(0, 0, 0, false), (1, 0, 0, false)];
    let mut topics = dirs[0].1.clone();
    topics.iter_mut().for_each(|(_, partitions)| partitions.sort_unstable());
    assert_eq!((dirs.len(), dirs[0].0, topics), (1, NONE, vec![(Some(name), sizes)]));
}

#[test]
fn groups_can_be_listed_by_state_and_type() {
    let broker = Broker::start();
    for (version, filters) in [(3, 0), (4, 1), (5, 2)] {
        let body = (0..filters).fold(Body::new(), |body, _| body.compact_array(0));
        let mut answer = broker.connect().call(LIST_GROUPS, version, &body.tags());
        answer.i32();
        assert_eq!(answer.i16(), NONE, "version {version}");
    }
}
