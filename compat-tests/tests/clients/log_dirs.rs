//! Several log directories in one broker: replicas are spread over them, move between them under load and over crashes, and a directory that
//! is missing takes only its own replicas along.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use compat_tests::clients::{Outgoing, Sender, create_topic, read_topic, send_all};
use compat_tests::wire::{ALTER_REPLICA_LOG_DIRS, Body, DESCRIBE_LOG_DIRS};
use compat_tests::{Broker, until};

const MOVE_MAX: Duration = Duration::from_secs(60);

/// A broker with two directories; the first holds the metadata.
fn broker_with_two() -> Option<(Broker, [PathBuf; 2])> {
    if std::env::var("BARNABAS_ADDRESS").is_ok() {
        return None;
    }
    let mut broker = Broker::prepared(&[]);
    let dirs = [broker.data(), broker.data().with_file_name("disk2").join("data")];
    broker.set("log.dirs", &format!("{},{}", dirs[0].display(), dirs[1].display()));
    broker.run();
    Some((broker, dirs))
}

#[derive(Debug)]
struct Dir {
    error: i16,
    path: PathBuf,
    replicas: Vec<Replica>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Replica {
    topic: String,
    partition: i32,
    size: i64,
    lag: i64,
    is_future: bool,
}

fn describe(broker: &Broker) -> Vec<Dir> {
    let mut answer = broker.connect().call(DESCRIBE_LOG_DIRS, 4, &Body::new().compact_null().tags());
    assert_eq!((answer.i32(), answer.i16()), (0, 0), "throttle, error");
    let dirs = answer.compact_array(|dir| {
        let (error, path) = (dir.i16(), dir.compact_string().expect("a path").into());
        let topics = dir.compact_array(|topic| {
            let name = topic.compact_string().expect("a topic");
            let replicas = topic.compact_array(|one| {
                let (partition, size, lag, is_future) = (one.i32(), one.i64(), one.i64(), one.bool());
                one.tags();
                Replica { topic: name.clone(), partition, size, lag, is_future }
            });
            topic.tags();
            replicas
        });
        let _space = (dir.i64(), dir.i64());
        dir.tags();
        Dir { error, path, replicas: topics.into_iter().flatten().collect() }
    });
    answer.tags();
    answer.end();
    dirs
}

/// The directories in which a partition lies, each with whether it is a copy on its way there.
fn places(broker: &Broker, topic: &str, partition: i32) -> Vec<(PathBuf, bool)> {
    let mut places = Vec::new();
    for dir in describe(broker) {
        let here = dir.replicas.iter().filter(|replica| replica.topic == topic && replica.partition == partition);
        places.extend(here.map(|replica| (dir.path.clone(), replica.is_future)));
    }
    places
}

fn alter(broker: &Broker, topic: &str, partition: i32, dir: &str) -> i16 {
    let body = Body::new()
        .compact_array(1)
        .compact_string(dir)
        .compact_array(1)
        .compact_string(topic)
        .compact_array(1)
        .i32(partition)
        .tags()
        .tags()
        .tags();
    let mut answer = broker.connect().call(ALTER_REPLICA_LOG_DIRS, 2, &body);
    assert_eq!(answer.i32(), 0, "throttle");
    let mut codes = answer.compact_array(|topic| {
        topic.compact_string();
        let codes = topic.compact_array(|one| {
            let code = (one.i32(), one.i16()).1;
            one.tags();
            code
        });
        topic.tags();
        codes
    });
    answer.tags();
    answer.end();
    codes.remove(0).remove(0)
}

fn other<'d>(dirs: &'d [PathBuf; 2], than: &PathBuf) -> &'d PathBuf {
    if dirs[0] == *than { &dirs[1] } else { &dirs[0] }
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn await_place(broker: &Broker, topic: &str, partition: i32, dir: &Path) {
    until("the replica in its new directory", MOVE_MAX, || {
        (places(broker, topic, partition) == [(dir.to_path_buf(), false)]).then_some(())
    });
}

#[test]
fn new_partitions_are_dealt_out_over_the_directories_and_stay_there() {
    let Some((mut broker, dirs)) = broker_with_two() else { return };
    let topic = create_topic(&broker, "dealt", 6, &[]);
    let records: Vec<_> = (0..60).map(|n| Outgoing::to(n % 6, n.to_string())).collect();
    send_all(&broker, &[], &topic, &records);
    let of = |broker: &Broker| (0..6).map(|partition| places(broker, &topic, partition)).collect::<Vec<_>>();
    let before = of(&broker);
    for dir in &dirs {
        assert_eq!(before.iter().filter(|places| **places == [(dir.clone(), false)]).count(), 3, "{before:?}");
        assert!(dir.join("meta.properties").exists());
    }
    broker.stop_and_run();
    assert_eq!(of(&broker), before);
    broker.kill_and_run();
    assert_eq!(of(&broker), before);
    assert_eq!(read_topic(&broker, &topic, 6).len(), 60);
}

#[test]
fn a_replica_moves_under_load_and_over_kills_and_nothing_is_missing_or_twice() {
    let Some((mut broker, dirs)) = broker_with_two() else { return };
    let topic = create_topic(&broker, "moved", 1, &[("segment.bytes", "1048576")]);
    // Slow enough that kills meet it half-way.
    let settings = [
        ("enable.idempotence", "true"),
        ("linger.ms", "1"),
        ("batch.num.messages", "50"),
        ("retry.backoff.ms", "20"),
        ("retry.backoff.max.ms", "100"),
        ("reconnect.backoff.ms", "20"),
        ("reconnect.backoff.max.ms", "100"),
        ("delivery.timeout.ms", "300000"),
        ("queue.buffering.max.messages", "2000"),
    ];
    let sender = Sender::new(&broker, &settings);
    let padding = "x".repeat(1000);
    let sent = std::sync::atomic::AtomicUsize::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also when something below panics: else the producer would go on for ever.
        let _over = Over(&done);
        let producing = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let number = sent.load(Ordering::Relaxed);
                let record = Outgoing::to(0, format!("{number} {padding}"));
                sender.send(&topic, number, &record).expect("the client takes the record");
                sent.store(number + 1, Ordering::Relaxed);
            }
        });
        let more = |count: usize| {
            let goal = sender.delivered() + count;
            until("records under way", MOVE_MAX, || (sender.delivered() >= goal).then_some(()));
        };
        more(5000);
        let first = places(&broker, &topic, 0).remove(0).0;
        let mut here = first.clone();
        for round in 0..6 {
            let to = other(&dirs, &here).clone();
            assert_eq!(alter(&broker, &topic, 0, &to.display().to_string()), 0);
            if round % 2 == 1 {
                broker.kill_and_run();
            }
            await_place(&broker, &topic, 0, &to);
            here = to;
            more(1000);
        }
        done.store(true, Ordering::Relaxed);
        producing.join().expect("the producer ends");
    });
    sender.flush();
    let deliveries = sender.deliveries();
    assert_eq!(deliveries.len(), sent.into_inner());
    let mut seen = BTreeSet::new();
    for record in read_topic(&broker, &topic, 1) {
        let number: usize = record.text().split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert!(seen.insert(number), "record {number} is there twice");
        assert_eq!(deliveries[&number], Ok((record.partition, record.offset)), "record {number}");
    }
    let lost: Vec<_> = deliveries.iter().filter(|(number, d)| d.is_ok() && !seen.contains(number)).collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    assert!(deliveries.values().all(Result::is_ok), "an idempotent producer notices nothing of it");
}

#[test]
fn a_directory_that_is_not_there_takes_only_its_own_partitions() {
    let Some((mut broker, dirs)) = broker_with_two() else { return };
    let topic = create_topic(&broker, "half", 4, &[]);
    let records: Vec<_> = (0..40).map(|n| Outgoing::to(n % 4, n.to_string())).collect();
    send_all(&broker, &[], &topic, &records);
    let away = |partition: &i32| places(&broker, &topic, *partition) == [(dirs[1].clone(), false)];
    let lost: Vec<i32> = (0..4).filter(away).collect();
    assert_eq!(lost.len(), 2);
    let kept: Vec<i32> = (0..4).filter(|partition| !lost.contains(partition)).collect();
    broker.stop();
    let disk = dirs[1].parent().expect("a disk");
    let hidden = disk.with_file_name("hidden");
    std::fs::rename(disk, &hidden).expect("unmounted");
    // Nothing can be found below a link to itself, or made.
    std::os::unix::fs::symlink(disk, disk).expect("a link");
    broker.run();
    let shown = describe(&broker);
    let offline = shown.iter().find(|dir| dir.path == dirs[1]).expect("it is shown");
    assert_eq!((offline.error, offline.replicas.len()), (56, 0), "KAFKA_STORAGE_ERROR");
    let kept_records: Vec<_> = kept.iter().map(|partition| Outgoing::to(*partition, "more")).collect();
    assert!(send_all(&broker, &[], &topic, &kept_records).iter().all(Result::is_ok));
    let lost_records: Vec<_> = lost.iter().map(|partition| Outgoing::to(*partition, "more")).collect();
    let refused = send_all(&broker, &[("delivery.timeout.ms", "2000"), ("linger.ms", "0")], &topic, &lost_records);
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert_eq!(alter(&broker, &topic, kept[0], &dirs[1].display().to_string()), 56);
    broker.stop();
    std::fs::remove_file(disk).expect("the link");
    std::fs::rename(&hidden, disk).expect("mounted");
    broker.run();
    assert!(send_all(&broker, &[], &topic, &lost_records).iter().all(Result::is_ok));
    assert_eq!(read_topic(&broker, &topic, 4).len(), 44);
}

#[test]
fn directories_that_are_somebody_elses_are_refused_with_a_reason() {
    let Some((mut broker, dirs)) = broker_with_two() else { return };
    broker.stop();
    let mut refused = |change: &dyn Fn(), reason: &str| {
        change();
        broker.spawn();
        until("the end of the process", MOVE_MAX, || (!broker.is_running()).then_some(()));
        broker.kill();
        assert!(broker.log().contains(reason), "{reason}:\n{}", broker.log());
    };
    let properties = dirs[1].join("meta.properties");
    let original = std::fs::read_to_string(&properties).expect("its identity");
    let rewrite = |from: &str, to: &str| {
        let line = |line: &str| if line.starts_with(from) { to.to_owned() } else { line.to_owned() };
        let text: Vec<String> = original.lines().map(line).collect();
        std::fs::write(&properties, text.join("\n") + "\n").expect("rewritten");
    };
    refused(&|| rewrite("node.id=", "node.id=77"), "belongs to node 77");
    refused(&|| rewrite("cluster.id=", "cluster.id=another"), "belongs to cluster another");
    let first = std::fs::read_to_string(dirs[0].join("meta.properties")).expect("its identity");
    refused(&|| std::fs::write(&properties, &first).expect("copied"), "have the same directory.id");
}
