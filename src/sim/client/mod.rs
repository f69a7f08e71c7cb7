//! Clients inside the simulation, over its network and in the real protocol.

pub mod admin;
pub mod committer;
pub mod group;
pub mod line;
pub mod member;
pub mod producer;
pub mod reader;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;

use self::line::Line;
use super::cluster::{NAMES, PORT};
use super::dice::Dice;
use super::history::{History, Place};
use crate::base::NodeAddress;
use crate::host::net::Net;
use crate::host::task;
use crate::wire::client::NodeRequest;
use crate::wire::messages::metadata_request::MetadataRequestTopic;
use crate::wire::messages::{MetadataRequest, MetadataResponse, StrBytes};

const CONNECT_MAX: Duration = Duration::from_secs(1);
pub const ASK_MAX: Duration = Duration::from_secs(4);

/// What every client has.
pub struct Client {
    pub name: String,
    pub net: Arc<dyn Net>,
    pub ip: IpAddr,
    pub dice: Dice,
    pub history: Rc<History>,
    pub phase: watch::Receiver<Phase>,
}

/// What clients are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Work,
    /// Begin nothing new.
    Finish,
    /// Go home.
    Leave,
}

/// Where a partition is led.
#[derive(Clone, Debug)]
pub struct Leader {
    pub topic_id: Uuid,
    pub epoch: i32,
    pub node: i32,
    pub address: NodeAddress,
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl Client {
    /// Whether nothing new is to be begun.
    pub fn is_finishing(&self) -> bool {
        *self.phase.borrow() >= Phase::Finish
    }

    pub fn is_leaving(&self) -> bool {
        *self.phase.borrow() == Phase::Leave
    }

    pub async fn pause(&self, ms: std::ops::Range<u64>) {
        task::sleep(self.dice.ms(ms)).await;
    }

    pub async fn connect(&self, address: &NodeAddress) -> Option<Line> {
        let stream = task::timeout(CONNECT_MAX, self.net.connect(address)).await?.ok()?;
        Some(Line::new(stream, &self.name))
    }

    /// A connection to any node.
    pub async fn connect_anywhere(&self) -> Option<Line> {
        let address = NodeAddress::new(*self.dice.pick(&NAMES), PORT);
        self.connect(&address).await
    }

    /// Asks any node.
    pub async fn ask_anyone<Q: NodeRequest>(&self, request: &Q) -> Option<Q::Answer> {
        self.connect_anywhere().await?.ask(request, ASK_MAX).await
    }

    /// Who leads a partition, as far as some node knows.
    pub async fn leader_of(&self, place: &Place) -> Option<Leader> {
        let topic = MetadataRequestTopic::default().with_name(Some(text(&place.topic).into()));
        let request = MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(false);
        leader_in(&self.ask_anyone(&request).await?, place)
    }
}

fn leader_in(answer: &MetadataResponse, place: &Place) -> Option<Leader> {
    let topic = answer.topics.first().filter(|topic| topic.error_code == 0)?;
    let partition = topic.partitions.iter().find(|one| one.partition_index == place.partition)?;
    let broker = answer.brokers.iter().find(|broker| broker.node_id == partition.leader_id)?;
    Some(Leader {
        topic_id: topic.topic_id,
        epoch: partition.leader_epoch,
        node: broker.node_id.0,
        address: NodeAddress::new(broker.host.to_string(), u16::try_from(broker.port).ok()?),
    })
}
