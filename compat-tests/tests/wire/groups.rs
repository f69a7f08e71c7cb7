//! The classic group protocol by hand. Traps 26, 29, 32, 34.

use std::time::{Duration, Instant};

use compat_tests::Broker;
use compat_tests::clients::unique;
use compat_tests::wire::{
    Body, Connection, FIND_COORDINATOR, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH, Reader,
    SYNC_GROUP,
};

use crate::calls::{NONE, topic};

const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;
const NOT_COORDINATOR: i16 = 16;
const ILLEGAL_GENERATION: i16 = 22;
const UNKNOWN_MEMBER_ID: i16 = 25;
const REBALANCE_IN_PROGRESS: i16 = 27;
const MEMBER_ID_REQUIRED: i16 = 79;

/// Waits until the group's coordinator is known and has loaded; it may take a moment on a fresh broker, but not long.
fn find_coordinator(connection: &mut Connection, group: &str) {
    compat_tests::until("a coordinator", Duration::from_secs(10), || {
        let mut answer = connection.call(FIND_COORDINATOR, 2, &Body::new().string(group).i8(0));
        answer.i32();
        match answer.i16() {
            NONE => {}
            COORDINATOR_NOT_AVAILABLE => return None,
            error => panic!("FindCoordinator: {error}"),
        }
        match heartbeat(connection, group, 0, "nobody") {
            UNKNOWN_MEMBER_ID => Some(()),
            // A loading coordinator answers heartbeats without looking.
            NONE | COORDINATOR_LOAD_IN_PROGRESS | NOT_COORDINATOR => None,
            error => panic!("Heartbeat: {error}"),
        }
    });
}

struct Joined {
    error: i16,
    generation: i32,
    leader: String,
    member: String,
    members: usize,
}

fn join_body(group: &str, member: &str, session_ms: i32, rebalance_ms: i32) -> Body {
    let body = Body::new().string(group).i32(session_ms).i32(rebalance_ms).string(member).null_string();
    body.string("consumer").i32(1).string("range").bytes(b"subscription")
}

fn joined(mut answer: Reader) -> Joined {
    answer.i32();
    let (error, generation) = (answer.i16(), answer.i32());
    answer.string();
    let (leader, member) = (answer.string().unwrap_or_default(), answer.string().unwrap_or_default());
    let members = answer.array(|r| (r.string(), r.string(), r.bytes()));
    answer.end();
    Joined { error, generation, leader, member, members: members.len() }
}

/// Joins with an id that the coordinator gives (KIP-394), and waits for the answer.
fn join(connection: &mut Connection, group: &str, session_ms: i32) -> Joined {
    let required = joined(connection.call(JOIN_GROUP, 5, &join_body(group, "", session_ms, 20_000)));
    assert_eq!(required.error, MEMBER_ID_REQUIRED);
    joined(connection.call(JOIN_GROUP, 5, &join_body(group, &required.member, session_ms, 20_000)))
}

fn sync(
    connection: &mut Connection,
    group: &str,
    generation: i32,
    member: &str,
    assignments: &[(&str, &[u8])],
) -> (i16, Vec<u8>) {
    let mut body = Body::new().string(group).i32(generation).string(member).null_string().i32(assignments.len() as i32);
    for (member, bytes) in assignments {
        body = body.string(member).bytes(bytes);
    }
    let mut answer = connection.call(SYNC_GROUP, 3, &body);
    answer.i32();
    (answer.i16(), answer.bytes().unwrap_or_default())
}

fn heartbeat(connection: &mut Connection, group: &str, generation: i32, member: &str) -> i16 {
    let mut answer =
        connection.call(HEARTBEAT, 3, &Body::new().string(group).i32(generation).string(member).null_string());
    answer.i32();
    answer.i16()
}

fn leave(connection: &mut Connection, group: &str, member: &str) -> i16 {
    let mut answer = connection.call(LEAVE_GROUP, 3, &Body::new().string(group).i32(1).string(member).null_string());
    answer.i32();
    answer.i16()
}

/// OffsetCommit v7 of partition 0.
fn commit(
    connection: &mut Connection,
    group: &str,
    generation: i32,
    member: &str,
    instance: Option<&str>,
    topic: &str,
    offset: i64,
) -> i16 {
    let body = Body::new().string(group).i32(generation).string(member);
    let body = instance.map_or(body.clone().null_string(), |id| body.string(id));
    let body = body.i32(1).string(topic).i32(1).i32(0).i64(offset).i32(-1).null_string();
    let mut answer = connection.call(OFFSET_COMMIT, 7, &body);
    answer.i32();
    let mut topics = answer.array(|r| {
        r.string();
        r.array(|r| (r.i32(), r.i16()))
    });
    topics.remove(0).remove(0).1
}

/// Trap 26: with no settings at all a group is there within three seconds.
#[test]
fn a_fresh_broker_coordinates_at_once() {
    let Some(broker) = Broker::owned(&[]) else { return };
    let began = Instant::now();
    let mut connection = broker.connect();
    find_coordinator(&mut connection, "first");
    let member = join(&mut connection, "first", 6000);
    assert_eq!((member.error, member.members), (NONE, 1));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn two_members_walk_through_join_sync_heartbeat_and_leave() {
    let broker = Broker::start();
    let group = unique("walk");
    let (mut a, mut b) = (broker.connect(), broker.connect());
    find_coordinator(&mut a, &group);
    let first = join(&mut a, &group, 10_000);
    assert_eq!((first.error, first.generation, first.members, &first.leader), (NONE, 1, 1, &first.member));
    assert_eq!(sync(&mut a, &group, 1, &first.member, &[(&first.member, b"all")]), (NONE, b"all".to_vec()));
    assert_eq!(heartbeat(&mut a, &group, 1, &first.member), NONE);

    let required = joined(b.call(JOIN_GROUP, 5, &join_body(&group, "", 10_000, 20_000)));
    b.send(JOIN_GROUP, 5, &join_body(&group, &required.member, 10_000, 20_000));
    compat_tests::until("the heartbeat tells of the rebalance", Duration::from_secs(5), || {
        (heartbeat(&mut a, &group, 1, &first.member) == REBALANCE_IN_PROGRESS).then_some(())
    });
    assert!(!b.has_answer_within(Duration::from_millis(200)), "the newcomer waits for the other");
    let again = joined(a.call(JOIN_GROUP, 5, &join_body(&group, &first.member, 10_000, 20_000)));
    let second = joined(b.receive());
    assert_eq!((again.error, again.generation, again.members), (NONE, 2, 2));
    assert_eq!((second.error, second.generation, second.members), (NONE, 2, 0), "only the leader sees all members");
    let shares = [(first.member.as_str(), &b"one"[..]), (second.member.as_str(), &b"two"[..])];
    assert_eq!(sync(&mut a, &group, 2, &first.member, &shares), (NONE, b"one".to_vec()));
    assert_eq!(sync(&mut b, &group, 2, &second.member, &[]), (NONE, b"two".to_vec()));
    assert_eq!(heartbeat(&mut b, &group, 1, &second.member), ILLEGAL_GENERATION);
    assert_eq!(heartbeat(&mut b, &group, 2, "nobody"), UNKNOWN_MEMBER_ID);
    assert_eq!(leave(&mut a, &group, &first.member), NONE);
    assert_eq!(heartbeat(&mut b, &group, 2, &second.member), REBALANCE_IN_PROGRESS);
    let alone = joined(b.call(JOIN_GROUP, 5, &join_body(&group, &second.member, 10_000, 20_000)));
    assert_eq!((alone.error, alone.generation, alone.members), (NONE, 3, 1));
}

/// Trap 32: a member whose connection is gone and who never comes back does not hold the group up for longer than its session.
#[test]
fn a_join_completes_when_the_silent_member_times_out() {
    let broker = Broker::start();
    let group = unique("silent");
    let (mut a, mut b) = (broker.connect(), broker.connect());
    find_coordinator(&mut a, &group);
    let first = join(&mut a, &group, 6000);
    assert_eq!(sync(&mut a, &group, 1, &first.member, &[(&first.member, b"all")]).0, NONE);
    drop(a);
    let began = Instant::now();
    let second = join(&mut b, &group, 6000);
    assert_eq!((second.error, second.members, &second.leader), (NONE, 1, &second.member));
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
}

/// Trap 34: who may commit, by the state of the group.
#[test]
fn commits_without_membership_follow_the_table() {
    let broker = Broker::start();
    let name = topic(&broker, "table", 1, &[]);
    let mut c = broker.connect();
    let fresh = || unique("table");
    let group = fresh();
    find_coordinator(&mut c, &group);
    assert_eq!(commit(&mut c, &group, -1, "", None, &name, 1), NONE, "an unknown group becomes a simple one");
    assert_eq!(commit(&mut c, &group, -1, "", None, &name, 2), NONE, "and goes on");
    assert_eq!(commit(&mut c, &fresh(), -1, "", Some("instance"), &name, 1), NONE, "an instance id is ignored");
    assert_eq!(commit(&mut c, &fresh(), 0, "", None, &name, 1), ILLEGAL_GENERATION, "a generation of an unknown group");
    assert_eq!(commit(&mut c, &fresh(), 5, "someone", None, &name, 1), ILLEGAL_GENERATION);

    let busy = fresh();
    let member = join(&mut c, &busy, 10_000);
    assert_eq!(sync(&mut c, &busy, 1, &member.member, &[(&member.member, b"all")]).0, NONE);
    assert_eq!(commit(&mut c, &busy, 1, &member.member, None, &name, 1), NONE);
    assert_eq!(commit(&mut c, &busy, -1, "", None, &name, 1), UNKNOWN_MEMBER_ID, "a group with members");
    assert_eq!(commit(&mut c, &busy, 1, "nobody", None, &name, 1), UNKNOWN_MEMBER_ID);
    assert_eq!(commit(&mut c, &busy, 7, &member.member, None, &name, 1), ILLEGAL_GENERATION);
    assert_eq!(leave(&mut c, &busy, &member.member), NONE);
    assert_eq!(commit(&mut c, &busy, -1, "", None, &name, 3), NONE, "empty again");
}

/// Error and offsets of partitions 0 to 4, by OffsetFetch v1, v5 or v8.
fn fetch_offsets(connection: &mut Connection, version: i16, group: &str, topic: &str) -> (i16, Vec<(i16, i64)>) {
    let mut answer;
    if version == 8 {
        let body =
            Body::new().compact_array(1).compact_string(group).compact_array(1).compact_string(topic).compact_array(5);
        let body = (0..5).fold(body, Body::i32).tags().tags().bool(true).tags();
        answer = connection.call(OFFSET_FETCH, 8, &body);
        answer.i32();
        let groups = answer.compact_array(|r| {
            r.compact_string();
            let topics = r.compact_array(|r| {
                r.compact_string();
                let partitions = r.compact_array(|r| {
                    r.i32();
                    let offset = r.i64();
                    r.i32();
                    r.compact_string();
                    let error = r.i16();
                    r.tags();
                    (error, offset)
                });
                r.tags();
                partitions
            });
            let error = r.i16();
            r.tags();
            (error, topics.concat())
        });
        return groups.into_iter().next().expect("the group");
    }
    let body = (0..5).fold(Body::new().string(group).i32(1).string(topic).i32(5), Body::i32);
    answer = connection.call(OFFSET_FETCH, version, &body);
    if version >= 3 {
        answer.i32();
    }
    let topics = answer.array(|r| {
        r.string();
        r.array(|r| {
            r.i32();
            let offset = r.i64();
            if version >= 5 {
                r.i32();
            }
            r.string();
            (r.i16(), offset)
        })
    });
    let error = if version >= 2 { answer.i16() } else { NONE };
    (error, topics.concat())
}

/// Trap 29: three of five partitions are committed. While the broker comes back every answer is an error or the whole truth.
#[test]
fn offsets_never_look_empty_while_the_group_loads() {
    let Some(mut broker) = Broker::owned(&[]) else { return };
    let name = topic(&broker, "loading", 5, &[]);
    let mut connection = broker.connect();
    find_coordinator(&mut connection, "loading");
    for partition in 0..3 {
        let body = Body::new().string("loading").i32(-1).string("").null_string();
        let body =
            body.i32(1).string(&name).i32(1).i32(partition).i64(100 + i64::from(partition)).i32(-1).null_string();
        let mut answer = connection.call(OFFSET_COMMIT, 7, &body);
        answer.i32();
        assert_eq!(
            answer.array(|r| (r.string(), r.array(|r| (r.i32(), r.i16())))),
            [(Some(name.clone()), vec![(partition, NONE)])]
        );
    }
    let truth = vec![(NONE, 100), (NONE, 101), (NONE, 102), (NONE, -1), (NONE, -1)];
    let loading = [COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE];
    for round in 0..4 {
        if round % 2 == 0 {
            broker.kill_and_run()
        } else {
            broker.stop_and_run()
        };
        let mut connection = broker.connect();
        for version in [1, 5, 8].into_iter().cycle().take(60) {
            let (error, partitions) = fetch_offsets(&mut connection, version, "loading", &name);
            let refused = loading.contains(&error) || partitions.iter().any(|(error, _)| loading.contains(error));
            assert!(refused || (error, &partitions) == (NONE, &truth), "version {version}: {error} {partitions:?}");
        }
        compat_tests::until("the group is loaded", Duration::from_secs(10), || {
            (fetch_offsets(&mut connection, 8, "loading", &name) == (NONE, truth.clone())).then_some(())
        });
    }
}
