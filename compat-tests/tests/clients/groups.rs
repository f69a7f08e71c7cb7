//! Consumer groups of one to seven members over six partitions: shares, rebalances on join, leave and crash, static members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use compat_tests::Broker;
use compat_tests::clients::{CALL_MAX, Outgoing, create_topic, read_topic, reader, send_all, unique};
use compat_tests::members::{Member, SETTLE_MAX, settle, shares};
use compat_tests::wait::{stays, until};
use compat_tests::wire::Reader;
use rdkafka::Offset;
use rdkafka::consumer::Consumer;

const PROGRAM: &str = env!("CARGO_BIN_EXE_group-member");
const PARTITIONS: i32 = 6;
/// What one to seven members own of six partitions; the seventh idles.
const SHARES: [&[usize]; 7] =
    [&[6], &[3, 3], &[2, 2, 2], &[2, 2, 1, 1], &[2, 1, 1, 1, 1], &[1, 1, 1, 1, 1, 1], &[1, 1, 1, 1, 1, 1, 0]];

struct Group {
    broker: Broker,
    name: String,
    topic: String,
    strategy: &'static str,
}

impl Group {
    fn new(strategy: &'static str) -> Group {
        let broker = Broker::start();
        let topic = create_topic(&broker, "group", PARTITIONS, &[]);
        Group { broker, name: unique("group"), topic, strategy }
    }

    fn join(&self) -> Member {
        self.join_as(&[])
    }

    fn join_as(&self, settings: &[(&str, &str)]) -> Member {
        let strategy = [("partition.assignment.strategy", self.strategy)];
        Member::join(PROGRAM, &self.broker, &self.name, &self.topic, &[&strategy, settings].concat())
    }

    fn send(&self, from: i32, count: i32) {
        let records: Vec<Outgoing> =
            (from..from + count).map(|n| Outgoing::to(n % PARTITIONS, n.to_string())).collect();
        assert!(send_all(&self.broker, &[], &self.topic, &records).iter().all(Result::is_ok));
    }
}

/// One to seven members join one by one, then leave one by one.
fn grow_and_shrink(strategy: &'static str) {
    let group = Group::new(strategy);
    let mut members = Vec::new();
    for expected in SHARES {
        members.push(group.join());
        settle(&members, expected);
    }
    for count in (1..SHARES.len()).rev() {
        members.pop().expect("a member").leave();
        settle(&members, SHARES[count - 1]);
    }
}

#[test]
fn range_shares_six_partitions_fairly() {
    grow_and_shrink("range");
}

#[test]
fn roundrobin_shares_six_partitions_fairly() {
    grow_and_shrink("roundrobin");
}

#[test]
fn cooperative_sticky_shares_six_partitions_fairly() {
    grow_and_shrink("cooperative-sticky");
}

#[test]
fn six_members_that_start_together_get_one_partition_each() {
    let group = Group::new("range");
    let members: Vec<Member> = (0..6).map(|_| group.join()).collect();
    settle(&members, &[1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_crashed_member_is_replaced_after_its_session() {
    let group = Group::new("range");
    let mut members: Vec<Member> = (0..3).map(|_| group.join()).collect();
    settle(&members, &[2, 2, 2]);
    members.pop().expect("a member").crash();
    settle(&members, &[3, 3]);
}

#[test]
fn a_stalled_member_loses_its_partitions_and_gets_some_again() {
    let group = Group::new("range");
    let members = [group.join(), group.join()];
    settle(&members, &[3, 3]);
    members[0].stall();
    until("all partitions at the living member", SETTLE_MAX, || (members[1].assigned().len() == 6).then_some(()));
    members[0].go_on();
    settle(&members, &[3, 3]);
}

#[test]
fn cooperative_members_keep_what_they_need_not_give_up() {
    let group = Group::new("cooperative-sticky");
    let mut members = vec![group.join()];
    settle(&members, &[6]);
    members.push(group.join());
    settle(&members, &[3, 3]);
    let given_up: BTreeSet<i32> = members[0].revoked().into_iter().flatten().collect();
    assert_eq!(given_up, members[1].assigned(), "only what the newcomer got");
}

#[test]
fn a_static_member_comes_back_within_its_session_without_a_rebalance() {
    let group = Group::new("range");
    let join = |id: &str| group.join_as(&[("group.instance.id", id), ("session.timeout.ms", "20000")]);
    let (first, second) = (join("a"), join("b"));
    until("three and three", SETTLE_MAX, || (shares([&first, &second]) == [3, 3]).then_some(()));
    let (owned, stayed, revocations) = (second.assigned(), first.assigned(), first.revoked().len());
    second.leave();
    let again = join("b");
    until("the same partitions again", SETTLE_MAX, || (again.assigned() == owned).then_some(()));
    assert_eq!((first.assigned(), first.revoked().len()), (stayed, revocations));
}

#[test]
fn a_static_member_that_stays_away_is_replaced() {
    let group = Group::new("range");
    let members = vec![group.join_as(&[("group.instance.id", "a")])];
    let gone = group.join_as(&[("group.instance.id", "b")]);
    until("three and three", SETTLE_MAX, || (shares([&members[0], &gone]) == [3, 3]).then_some(()));
    gone.leave();
    assert!(
        stays(Duration::from_secs(2), || members[0].assigned().len() == 3),
        "a static member does not leave by closing"
    );
    settle(&members, &[6]);
}

#[test]
fn a_second_process_with_the_same_instance_id_fences_the_first() {
    let group = Group::new("range");
    let first = group.join_as(&[("group.instance.id", "same")]);
    until("all partitions", SETTLE_MAX, || (first.assigned().len() == 6).then_some(()));
    let second = group.join_as(&[("group.instance.id", "same")]);
    until("all partitions at the second", SETTLE_MAX, || (second.assigned().len() == 6).then_some(()));
    until("the first is fenced", SETTLE_MAX, || first.errors().iter().any(|e| e.contains("Fenced")).then_some(()));
}

#[test]
fn every_record_is_read_while_members_come_and_go() {
    let group = Group::new("range");
    let first = group.join();
    let mut sent = 0;
    let mut read_by_helpers = Vec::new();
    for _ in 0..3 {
        let helper = group.join();
        group.send(sent, 300);
        sent += 300;
        until("both own partitions", SETTLE_MAX, || (shares([&first, &helper]) == [3, 3]).then_some(()));
        group.send(sent, 300);
        sent += 300;
        until("the helper reads", SETTLE_MAX, || (!helper.records().is_empty()).then_some(()));
        read_by_helpers.extend(helper.leave());
        until("all partitions back", SETTLE_MAX, || (first.assigned().len() == 6).then_some(()));
    }
    let expected: BTreeSet<(i32, i64)> = (0..sent).map(|n| (n % PARTITIONS, i64::from(n / PARTITIONS))).collect();
    until("every record", SETTLE_MAX, || {
        let read: BTreeSet<(i32, i64)> = read_by_helpers.iter().copied().chain(first.records()).collect();
        (read == expected).then_some(())
    });
}

/// Trap 32: members come and go faster than the group settles; half of them crash.
#[test]
fn a_group_survives_a_storm_of_joins_leaves_and_crashes() {
    let group = Group::new("range");
    let steady = group.join();
    let mut members = Vec::new();
    for round in 0..12 {
        members.push(group.join());
        std::thread::sleep(Duration::from_millis(300));
        if round % 3 == 2 {
            members.remove(0).crash();
            members.remove(0).leave();
        }
    }
    members.into_iter().for_each(Member::crash);
    until("all partitions at the member that stayed", SETTLE_MAX, || (steady.assigned().len() == 6).then_some(()));
}

/// A topic that gains partitions while a group reads it.
#[test]
fn new_partitions_reach_the_group() {
    let group = Group::new("range");
    let members = [
        group.join_as(&[("topic.metadata.refresh.interval.ms", "500")]),
        group.join_as(&[("topic.metadata.refresh.interval.ms", "500")]),
    ];
    settle(&members, &[3, 3]);
    super::admin::grow(&group.broker, &group.topic, 8);
    settle(&members, &[4, 4]);
}

/// Trap 49: lag tools read commits from `__consumer_offsets`, in Kafka's own format.
#[test]
fn commits_can_be_read_from_the_offsets_topic() {
    let group = Group::new("range");
    group.send(0, 60);
    let member = group.join();
    until("all records read", SETTLE_MAX, || (member.records().len() == 60).then_some(()));
    member.leave();
    let look = reader(&group.broker, "__consumer_offsets", 1, Offset::Beginning, &[]);
    let metadata = look.fetch_metadata(Some("__consumer_offsets"), CALL_MAX).expect("metadata");
    let partitions = i32::try_from(metadata.topics()[0].partitions().len()).expect("a count");
    let commits: BTreeMap<i32, i64> = read_topic(&group.broker, "__consumer_offsets", partitions)
        .iter()
        .filter_map(|r| {
            Some((
                committed_partition(r.key.as_deref()?, &group.name, &group.topic)?,
                committed_offset(r.value.as_deref()?),
            ))
        })
        .collect();
    assert_eq!(commits, (0..PARTITIONS).map(|p| (p, 10)).collect(), "the last commit of each partition");
}

/// The partition of an offset commit's key (version 0 or 1: group, topic, partition), when it is of this group and topic.
fn committed_partition(key: &[u8], group: &str, topic: &str) -> Option<i32> {
    let mut key = Reader::new(key.to_vec());
    if !(0..=1).contains(&key.i16()) {
        return None;
    }
    (key.string().as_deref() == Some(group) && key.string().as_deref() == Some(topic)).then(|| key.i32())
}

/// The offset in an offset commit's value (any version: the version, then the offset).
fn committed_offset(value: &[u8]) -> i64 {
    let mut value = Reader::new(value.to_vec());
    value.i16();
    value.i64()
}
