//! A consumer that reads one partition from its begin, strictly: no record is skipped, none comes twice, and its position is never out of
//! range, but for what the leader had not synced when its power was cut. One that stands in a rack goes to the replica there when the leader says so (KIP-392), and comes back when that has nothing.

use super::line::Line;
use super::{ASK_MAX, Client, Leader, text};
use crate::base::{ErrorCode, NodeAddress, Offset};
use crate::records::{Batches, records};
use crate::sim::cluster::{NAMES, PORT};
use crate::sim::history::{FoundLog, Place, Value};
use crate::wire::messages::FetchRequest;
use crate::wire::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::wire::messages::fetch_response::PartitionData;

pub struct Reader {
    pub client: Client,
    pub place: Place,
    pub rack: Option<String>,
}

/// What an answer says about going on.
enum Next {
    /// With the same node.
    On,
    /// With a replica that is nearer.
    At(i32),
    /// With whoever leads now.
    Anew,
}

/// A follower that has nothing new for so long is left.
const IDLE_MAX: u32 = 6;

impl Reader {
    pub async fn run(self) {
        let mut position = 0;
        // As real clients do, it forgets no epoch that it has seen: a leader that stood still does not know yet that it leads no more.
        let mut epoch = 0;
        while !self.client.is_leaving() {
            if let Some(leader) = self.client.leader_of(&self.place).await.filter(|leader| leader.epoch >= epoch)
                && let Some(mut line) = self.client.connect(&leader.address).await
            {
                epoch = leader.epoch;
                let nearer = self.read(&mut line, &leader, &mut position).await;
                if let Some(near) = nearer.and_then(|id| NAMES.get(usize::try_from(id - 1).ok()?))
                    && let Some(mut line) = self.client.connect(&NodeAddress::new(*near, PORT)).await
                {
                    self.client.history.count("visits to followers");
                    self.read(&mut line, &leader, &mut position).await;
                }
            }
            self.client.pause(20..200).await;
        }
    }

    /// Reads until something goes wrong, or a replica is named that is nearer. For as long as there is something to read, where that is not
    /// the leader.
    async fn read(&self, line: &mut Line, leader: &Leader, position: &mut Offset) -> Option<i32> {
        let mut idle = 0;
        while !self.client.is_leaving() && (self.rack.is_none() || idle < IDLE_MAX) {
            let before = *position;
            let answer = line.ask(&self.request(leader, *position), ASK_MAX).await?;
            let data = answer.responses.first()?.partitions.first()?;
            match self.take(data, leader, position) {
                Next::On => {}
                Next::At(near) => return Some(near),
                Next::Anew => return None,
            }
            idle = if *position > before { 0 } else { idle + 1 };
        }
        None
    }

    fn take(&self, data: &PartitionData, leader: &Leader, position: &mut Offset) -> Next {
        let history = &self.client.history;
        match ErrorCode(data.error_code) {
            ErrorCode::NONE => {}
            ErrorCode::OFFSET_OUT_OF_RANGE if !history.is_bound(&self.place, *position) => {
                *position = 0;
                return Next::Anew;
            }
            ErrorCode::OFFSET_OUT_OF_RANGE => {
                history.violated(format!(
                    "{} reads {} at {position} from node {} in epoch {} and is told that this is out of range",
                    self.client.name, self.place, leader.node, leader.epoch
                ));
                return Next::Anew;
            }
            error => {
                history.note(&format!("{} gets {error}", self.client.name));
                return Next::Anew;
            }
        }
        if data.preferred_read_replica.0 >= 0 {
            return Next::At(data.preferred_read_replica.0);
        }
        let found = decode(data.records.as_ref().map_or(&[], |records| records));
        let from = *position;
        for (offset, value) in found.into_iter().filter(|(offset, _)| *offset >= from) {
            if offset != *position {
                history.violated(format!("poll-skip: {} got offset {offset} in place of {position}", self.place));
            }
            if offset >= data.high_watermark {
                history.violated(format!(
                    "{} shows offset {offset} at high watermark {}",
                    self.place, data.high_watermark
                ));
            }
            history.read(&self.place, offset, value, "was read");
            *position = offset + 1;
        }
        history.note(&format!("{} at {position} of {}", self.client.name, data.high_watermark));
        Next::On
    }

    fn request(&self, leader: &Leader, position: Offset) -> FetchRequest {
        let partition = FetchPartition::default()
            .with_partition(self.place.partition)
            .with_current_leader_epoch(leader.epoch)
            .with_fetch_offset(position)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_partition_max_bytes(1 << 20);
        let topic = FetchTopic::default().with_topic_id(leader.topic_id).with_partitions(vec![partition]);
        FetchRequest::default()
            .with_max_wait_ms(500)
            .with_min_bytes(1)
            .with_max_bytes(1 << 20)
            .with_session_id(0)
            .with_session_epoch(-1)
            .with_rack_id(text(self.rack.as_deref().unwrap_or_default()))
            .with_topics(vec![topic])
    }
}

/// The records of whole batches.
pub fn decode(bytes: &[u8]) -> FoundLog {
    let mut found = Vec::new();
    for batch in Batches::new(bytes) {
        let (_, batch) = batch.expect("a batch");
        assert!(crate::records::crc_is_valid(batch), "what is served is intact");
        for record in &records(batch, 1 << 20).expect("records") {
            let record = record.expect("a record");
            let value = Value::parse(record.value.unwrap_or_default()).expect("a value that was produced");
            found.push((record.offset, value));
        }
    }
    found
}
