//! Topics that change while a node is away.

use std::collections::BTreeMap;
use std::time::Duration;

use compat_tests::clients::{CALL_MAX, Outgoing, admin, admin_options, create_replicated, read_topic, send_all, wait};
use compat_tests::cluster::READY_MAX;
use compat_tests::faults::{Recorder, check, monitor};
use compat_tests::{Cluster, until};
use rdkafka::admin::{AdminOptions, NewTopic, TopicReplication};
use rdkafka::types::RDKafkaErrorCode;

use crate::turn;

/// A node that was away while a topic was deleted and made again with the same name drops the old records and follows the new topic.
#[test]
fn topic_recreate_same_name_offline_broker() {
    let _turn = turn();
    let mut cluster = Cluster::start(&[]);
    let name = create_replicated(&cluster, "recreated", 3, 3, &[("min.insync.replicas", "2")]);
    cluster.await_full_isr(&name);
    let send = |cluster: &Cluster, from: i32, count: i32| {
        let records: Vec<Outgoing> = (from..from + count).map(|n| Outgoing::to(n % 3, n.to_string())).collect();
        let sent = send_all(cluster, &[("acks", "all")], &name, &records);
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    };
    send(&cluster, 0, 300);
    cluster.await_full_isr(&name);
    cluster.node_mut(3).kill();
    // Whom the client asks first may be the node that is gone.
    let limit = Some(Duration::from_secs(5));
    let options = AdminOptions::new().operation_timeout(limit).request_timeout(limit);
    until("the topic is deleted", READY_MAX, || {
        let deleted = wait(admin(&cluster).delete_topics(&[&name], &options)).ok()?.pop()?;
        matches!(deleted, Ok(_) | Err((_, RDKafkaErrorCode::UnknownTopicOrPartition))).then_some(())
    });
    until("the topic is made again", CALL_MAX, || {
        // The third copy is the node's that is away.
        let topic = NewTopic::new(&name, 3, TopicReplication::Fixed(3)).set("min.insync.replicas", "2");
        wait(admin(&cluster).create_topics([&topic], &admin_options())).ok()?.pop()?.ok()
    });
    for partition in 0..3 {
        cluster.leader(&name, partition);
    }
    send(&cluster, 1000, 60);
    cluster.run(3);
    cluster.await_full_isr(&name);
    std::thread::sleep(Duration::from_secs(1));
    send(&cluster, 2000, 60);
    let found = read_topic(&cluster, &name, 3);
    assert_eq!(found.len(), 120, "only the new topic's records");
    assert!(found.iter().all(|one| one.text().parse::<i32>().is_ok_and(|n| n >= 1000)), "{found:?}");
    let history = Recorder::in_memory();
    let ends: BTreeMap<i32, i64> = (0..3).map(|partition| (partition, 40)).collect();
    let metadata = cluster.metadata(&name).expect("metadata");
    for id in cluster.ids() {
        let mine = metadata.topics()[0].partitions().iter().filter(|one| one.replicas().contains(&id));
        let mine = mine.map(|one| (one.id(), ends[&one.id()])).collect();
        monitor::read_copy(id, cluster.node(id).socket_address(), &name, &mine, &history);
    }
    assert_eq!(check(&history.events()), []);
}
