//! One node with several directories, over simulated disks: what it starts with, and what it does when one fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::LocalSet;

use super::Node;
use super::directories::Directories;
use crate::base::ids::NO_BROKER;
use crate::config::{self, BrokerSettings, Sources};
use crate::controller::decide::create_topics::NewTopic;
use crate::host::Disk;
use crate::host::sim::{RuntimeClock, SimHost};
use crate::host::task;
use crate::log::checkpoints::MetaProperties;
use crate::telemetry::logs::LogControl;

fn settings(sim: &SimHost, set: &[&str]) -> BrokerSettings {
    let common = ["listeners=PLAINTEXT://127.0.0.1:9092", "http.listener=", "num.network.threads=1"];
    let set = common.iter().chain(set).map(|setting| (*setting).to_owned()).collect();
    config::load(&Sources { set, ..Sources::default() }, &*sim.disk).expect("good settings").settings
}

fn take(sim: &SimHost, set: &[&str]) -> Result<Directories, String> {
    let taken = Directories::take(&sim.host(), &settings(sim, set));
    taken.map(|(directories, _)| directories).map_err(|error| error.to_string())
}

fn keep(sim: &SimHost, dir: &str, node_id: i32, cluster_id: &str, directory_id: u128) {
    sim.disk.create_dir_all(Path::new(dir)).unwrap();
    let directory_id = Some(crate::base::TopicId(uuid::Uuid::from_u128(directory_id)).to_string());
    let properties = MetaProperties { cluster_id: cluster_id.into(), node_id, directory_id };
    properties.write(&*sim.disk, Path::new(dir)).unwrap();
}

fn with_metadata(sim: &SimHost, dir: &str) {
    sim.disk.create_dir_all(&Path::new(dir).join(crate::quorum::DIRECTORY)).unwrap();
}

const TWO: &str = "log.dirs=/a,/b";

#[test]
fn a_new_directory_joins_the_cluster_of_the_others() {
    let sim = SimHost::new(1);
    keep(&sim, "/a", 1, "abc", 201);
    let found = take(&sim, &[TWO]).unwrap();
    let of = |at: usize| (&*found.logs[at].identity.cluster_id, found.logs[at].identity.is_known);
    assert_eq!((of(0), of(1)), (("abc", true), ("abc", false)));
    assert_ne!(found.ids()[0], found.ids()[1]);
    assert_eq!(found.metadata.path, Path::new("/a"));
}

#[test]
fn a_directory_that_cannot_be_used_stays_out_unless_it_holds_the_metadata() {
    let sim = SimHost::new(1);
    keep(&sim, "/a", 1, "abc", 201);
    keep(&sim, "/b", 1, "abc", 202);
    sim.disk.break_device(Path::new("/b"), true);
    let found = take(&sim, &[TWO]).unwrap();
    assert_eq!((found.logs.len(), found.missing.as_slice()), (1, [PathBuf::from("/b")].as_slice()));
    assert_eq!(found.previous_epoch(&sim.host()), None, "nobody knows how that one was left");
    sim.disk.break_device(Path::new("/b"), false);
    sim.disk.break_device(Path::new("/a"), true);
    assert!(take(&sim, &[TWO]).unwrap_err().contains("/a"));
    assert!(take(&sim, &[TWO, "metadata.log.dir=/b"]).is_ok());
}

#[track_caller]
fn check_refused(sim: &SimHost, reason: &str) {
    let refused = take(sim, &[TWO]).unwrap_err();
    assert!(refused.contains(reason), "{refused}");
}

#[test]
fn directories_that_do_not_belong_together_are_refused() {
    let sim = SimHost::new(1);
    keep(&sim, "/a", 1, "abc", 201);
    keep(&sim, "/b", 7, "abc", 202);
    check_refused(&sim, "/b belongs to node 7, but node.id is 1");
    keep(&sim, "/b", 1, "other", 202);
    check_refused(&sim, "/b belongs to cluster other, but /a to cluster abc");
    keep(&sim, "/b", 1, "abc", 201);
    check_refused(&sim, "/a and /b have the same directory.id");
    keep(&sim, "/b", 1, "abc", 202);
    assert!(take(&sim, &[TWO]).is_ok());
}

#[test]
fn a_node_that_was_here_before_does_not_start_without_its_metadata() {
    let sim = SimHost::new(1);
    keep(&sim, "/b", 1, "abc", 202);
    check_refused(&sim, "put the directory with the metadata back");
    with_metadata(&sim, "/b");
    check_refused(&sim, "set metadata.log.dir = /b");
    assert!(take(&sim, &[TWO, "metadata.log.dir=/b"]).is_ok());
}

async fn start(sim: &SimHost) -> Node {
    task::block_inline();
    let host = sim.restarted().host_with(Arc::new(RuntimeClock::new(1_700_000_000_000)));
    let node = Node::start(host, settings(sim, &[TWO]), LogControl::detached("info").unwrap()).await.unwrap();
    within(node.serving()).await.unwrap();
    node
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    task::timeout(Duration::from_secs(60), work).await.expect("in time")
}

async fn make_topic(node: &Node) {
    let topic = NewTopic { partitions: 2, replication_factor: 1, ..NewTopic::with_defaults("t") };
    let made = node.broker().controller.create_topics(vec![topic], false).await.unwrap();
    assert!(made.iter().all(|one| one.result.is_ok()));
    node.broker().wait_applied(node.broker().image().offset, Duration::from_secs(30)).await;
}

/// Where the partitions lie, as the metadata knows it, and whether they are led.
async fn await_state(node: &Node, wanted: impl Fn(&[(Option<uuid::Uuid>, bool)]) -> bool) {
    let mut images = node.broker().controller.quorum().watch();
    let is_so = |image: &Arc<crate::metadata::Image>| {
        let states = (0..2).filter_map(|partition| image.partition("t", partition));
        let states: Vec<_> = states.map(|one| (one.directory_of(1), one.leader != NO_BROKER)).collect();
        wanted(&states)
    };
    within(images.wait_for(is_so)).await.expect("the quorum runs");
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_fails_takes_its_leaders_along_and_the_last_one_the_node() {
    LocalSet::new()
        .run_until(async {
            let sim = SimHost::new(5);
            let node = start(&sim).await;
            make_topic(&node).await;
            let dirs: Vec<_> = node.broker().partitions.dirs().iter().map(|dir| dir.id).collect();
            await_state(&node, |states| states == [(Some(dirs[0]), true), (Some(dirs[1]), true)]).await;
            sim.disk.break_device(Path::new("/b"), true);
            let second = node.broker().partitions.partition("t", 1).unwrap();
            assert!(second.view().is_err(), "it cannot even be opened");
            await_state(&node, |states| states == [(Some(dirs[0]), true), (Some(dirs[1]), false)]).await;
            assert!(node.broker().partitions.failure().is_none());
            node.broker().partitions.dirs().iter().next().unwrap().health.fail("no disk");
            let why = within(node.failed()).await.to_string();
            assert!(why.contains("the directory with the metadata, /a, has failed"), "{why}");
        })
        .await;
}
