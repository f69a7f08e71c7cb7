//! Facts about the quorum, on simulated machines: what was acknowledged is there after every kind of crash, what is damaged is
//! refused instead of forgotten, and several nodes agree.

mod addresses;
mod cluster;
mod crashes;
mod damage;
mod determinism;
mod elections;
mod members;
mod proposals;
mod real;
mod set_back;
mod snapshots;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::base::{NodeAddress, TopicId};
use crate::host::sim::{SimHost, SimKv};
use crate::host::{Disk, KeyValueStore};
use crate::metadata::{ConfigResource, Image, MetadataRecord, PartitionState};

/// A machine with one node on it.
struct Machine {
    sim: SimHost,
    kv: Arc<SimKv>,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let machine = Machine { sim: SimHost::new(seed), kv: Arc::default() };
        // Whoever makes the log directory makes it durable, too.
        machine.sim.disk.create_dir_all(Path::new("/data")).expect("an empty disk");
        machine.sim.disk.sync_dir(Path::new("/")).expect("an empty disk");
        machine
    }

    async fn open(&self) -> Result<Quorum, QuorumError> {
        self.open_as(false).await
    }

    async fn open_as(&self, must_exist: bool) -> Result<Quorum, QuorumError> {
        let options = QuorumOptions { must_exist, ..alone(opener(&self.kv)) };
        Quorum::open(&self.sim.host(), Path::new("/data"), options).await
    }

    fn log_file(&self) -> PathBuf {
        file("00000000000000000000.log")
    }
}

/// Node 1, with nobody else.
fn alone(store: StoreOpener) -> QuorumOptions {
    QuorumOptions {
        node_id: 1,
        directory_id: Uuid::from_u128(7),
        must_exist: false,
        store,
        voters: Vec::new(),
        my_address: NodeAddress::new("localhost", 9093),
        transport: Arc::new(NoTransport::default()),
        timing: QuorumTiming::default(),
    }
}

fn opener(kv: &Arc<SimKv>) -> StoreOpener {
    let kv = kv.clone();
    Arc::new(move |path| Ok(kv.open(path)? as Arc<dyn KeyValueStore>))
}

fn file(name: &str) -> PathBuf {
    Path::new("/data").join(DIRECTORY).join(name)
}

fn topic(number: u128) -> MetadataRecord {
    MetadataRecord::Topic {
        id: TopicId(Uuid::from_u128(number)),
        name: format!("topic-{number}"),
        partitions: vec![PartitionState::new(vec![1], vec![])],
    }
}

/// A config whose record takes about `bytes`.
fn bulky(number: usize, bytes: usize) -> MetadataRecord {
    MetadataRecord::Config {
        resource: ConfigResource::topic(format!("t{number}")),
        name: "k".into(),
        value: Some("v".repeat(bytes)),
    }
}

fn names(image: &Image) -> Vec<String> {
    image.topics().map(|topic| topic.name.to_string()).collect()
}
