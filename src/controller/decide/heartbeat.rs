//! A broker's heartbeat: may it serve, must it be fenced, may it stop (KIP-631). Heartbeats that change nothing make no records; when
//! a broker was last heard of is volatile and kept by the driver.

use super::directories::offline_directories;
use super::elections::{Event, after};
use super::rules::Rules;
use super::{Decision, Draft};
use crate::base::{BrokerId, ErrorCode};
use crate::metadata::{BrokerRegistration, Image, MetadataRecord};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    pub id: BrokerId,
    pub epoch: i64,
    /// How far the broker has the metadata.
    pub metadata_offset: i64,
    pub want_fence: bool,
    pub want_shut_down: bool,
    /// Directories that failed, all of them each time.
    pub offline_directories: Vec<uuid::Uuid>,
}

/// What the driver remembers of a broker that wants to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// The offset of the records that moved its leaders away.
    pub moved_at: i64,
    /// How far the slowest of the other active brokers has the metadata.
    pub seen_by_all: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    pub caught_up: bool,
    pub fenced: bool,
    pub shutting_down: bool,
    pub should_shut_down: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Fenced,
    Serving,
    ShuttingDown,
    ShutDown,
}

/// Decides a heartbeat.
pub fn heartbeat(
    image: &Image,
    rules: &Rules<'_>,
    beat: &Heartbeat,
    stopping: Option<Stopping>,
) -> Decision<Result<HeartbeatReply, ErrorCode>> {
    let Some(broker) = image.broker(beat.id).filter(|broker| broker.epoch == beat.epoch) else {
        return Decision::unchanged(Err(ErrorCode::STALE_BROKER_EPOCH));
    };
    let caught_up = beat.metadata_offset >= broker.epoch;
    let next = next(image, broker, beat, caught_up, stopping);
    let mut draft = Draft::of(image);
    draft.extend(offline_directories(image, rules, broker, &beat.offline_directories));
    draft.extend(change_to(&draft.image, rules, beat.id, next));
    let reply = HeartbeatReply {
        caught_up,
        fenced: matches!(next, Standing::Fenced | Standing::ShutDown),
        shutting_down: next == Standing::ShuttingDown,
        should_shut_down: next == Standing::ShutDown,
    };
    Decision { records: draft.records, reply: Ok(reply) }
}

fn next(
    image: &Image,
    broker: &BrokerRegistration,
    beat: &Heartbeat,
    caught_up: bool,
    stopping: Option<Stopping>,
) -> Standing {
    let shut_down_if = |may: bool, else_| if may { Standing::ShutDown } else { else_ };
    if broker.fenced {
        let serves = !beat.want_fence && caught_up;
        return shut_down_if(beat.want_shut_down, if serves { Standing::Serving } else { Standing::Fenced });
    }
    if broker.in_controlled_shutdown {
        let all_know = stopping.is_none_or(|stopping| stopping.moved_at <= stopping.seen_by_all);
        return shut_down_if(all_know && !image.leads_something(broker.id), Standing::ShuttingDown);
    }
    if beat.want_fence && !is_last(image, broker.id) {
        return shut_down_if(beat.want_shut_down, Standing::Fenced);
    }
    if beat.want_shut_down {
        return shut_down_if(!image.leads_something(broker.id) || is_last(image, broker.id), Standing::ShuttingDown);
    }
    Standing::Serving
}

/// Nobody is there who could take over: the partitions stay as they are until it comes back.
fn is_last(image: &Image, id: BrokerId) -> bool {
    !image.brokers().any(|other| other.id != id && other.is_active())
}

fn change_to(image: &Image, rules: &Rules<'_>, id: BrokerId, next: Standing) -> Vec<MetadataRecord> {
    let Some(broker) = image.broker(id) else { return Vec::new() };
    match next {
        Standing::Serving if broker.fenced => unfence(image, rules, broker),
        // The only one that could lead does not change thousands of partitions on its way out and as many when it is back.
        Standing::ShutDown if !broker.fenced && is_last(image, id) => Vec::new(),
        Standing::Fenced | Standing::ShutDown if !broker.fenced => fence(image, rules, id),
        Standing::ShuttingDown if !broker.in_controlled_shutdown => {
            let mut records =
                vec![MetadataRecord::Broker(BrokerRegistration { in_controlled_shutdown: true, ..(**broker).clone() })];
            records.extend(after(image, rules, Event::Left(id)));
            records
        }
        _ => Vec::new(),
    }
}

/// The broker is not heard any more, or asked for it. The partitions come first: should the rest get lost, it is still unfenced and
/// so fenced again.
pub fn fence(image: &Image, rules: &Rules<'_>, id: BrokerId) -> Vec<MetadataRecord> {
    if !image.is_live(id) {
        return Vec::new();
    }
    let mut records = after(image, rules, Event::Left(id));
    records.push(MetadataRecord::BrokerFenced { id, fenced: true });
    records
}

fn unfence(image: &Image, rules: &Rules<'_>, broker: &BrokerRegistration) -> Vec<MetadataRecord> {
    let id = broker.id;
    // One that was fenced while it stopped, and thought better of it, stays.
    let mut records = if broker.in_controlled_shutdown {
        let stays = BrokerRegistration { fenced: false, in_controlled_shutdown: false, ..broker.clone() };
        vec![MetadataRecord::Broker(stays)]
    } else {
        vec![MetadataRecord::BrokerFenced { id, fenced: false }]
    };
    records.extend(after(image, rules, Event::Returned(id)));
    records
}
