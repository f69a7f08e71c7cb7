//! A cluster forms by itself from three configurations, and any node does what a client asks.

use compat_tests::clients::{Outgoing, create_replicated, read_topic, send_all};
use compat_tests::{Broker, Cluster};

#[test]
fn three_nodes_form_a_cluster_of_one_id() {
    let cluster = Cluster::start(&[]);
    let metadata = cluster.metadata("none").expect("metadata");
    let mut ids: Vec<i32> = metadata.brokers().iter().map(|broker| broker.id()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    let id = |node: &Broker| {
        let properties = std::fs::read_to_string(node.data().join("meta.properties")).expect("meta.properties");
        properties.lines().find_map(|line| line.strip_prefix("cluster.id=").map(str::to_owned)).expect("an id")
    };
    let ids: Vec<String> = cluster.ids().map(|node| id(cluster.node(node))).collect();
    assert!(ids.iter().all(|one| *one == ids[0]), "{ids:?}");
}

#[test]
fn a_topic_made_through_any_node_can_be_written_through_any_node() {
    let cluster = Cluster::start(&[]);
    for (through, other) in [(1, 2), (2, 3), (3, 1)] {
        let topic = create_replicated(cluster.node(through), "any", 3, 3, &[]);
        let records: Vec<Outgoing> = (0..30).map(|n| Outgoing::to(n % 3, n.to_string())).collect();
        let sent = send_all(cluster.node(other), &[("acks", "all")], &topic, &records);
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        assert_eq!(read_topic(cluster.node(through), &topic, 3).len(), 30);
        cluster.await_full_isr(&topic);
    }
}

#[test]
fn nodes_stop_cleanly_one_after_the_other() {
    let mut cluster = Cluster::start(&[]);
    let topic = create_replicated(&cluster, "stopped", 3, 3, &[]);
    for id in cluster.ids() {
        cluster.node_mut(id).stop();
        let sent = send_all(&cluster, &[("acks", "all")], &topic, &[Outgoing::to(0, id.to_string())]);
        assert!(sent[0].is_ok(), "{sent:?}");
        cluster.run(id);
        cluster.await_full_isr(&topic);
    }
    assert_eq!(read_topic(&cluster, &topic, 3).len(), 3);
}
