//! A member of a group with a subscription: it joins, gets its partitions from whoever leads the group, and commits as it goes on, from where
//! the group stands. Two members share the work, so every crash and cut makes them share anew.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::group::{commit_request, fetch_request, find_coordinator};
use super::line::Line;
use super::{ASK_MAX, Client, text};
use crate::base::ErrorCode;
use crate::sim::history::Place;
use crate::wire::messages::join_group_request::JoinGroupRequestProtocol;
use crate::wire::messages::sync_group_request::SyncGroupRequestAssignment;
use crate::wire::messages::{HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, StrBytes, SyncGroupRequest};

/// A join waits for the other members.
const JOIN_MAX: Duration = Duration::from_secs(20);

/// What all members of a group know together: who owned what, and what was committed.
#[derive(Default)]
pub struct Board {
    owners: RefCell<BTreeMap<(i32, Place), String>>,
    stands: RefCell<BTreeMap<Place, Stand>>,
    commits: Rc<Cell<u64>>,
}

impl Board {
    pub fn new(commits: Rc<Cell<u64>>) -> Board {
        Board { commits, ..Board::default() }
    }
}

#[derive(Clone, Debug, Default)]
struct Stand {
    committed: i64,
    /// Tried in a generation, and not answered.
    unanswered: BTreeSet<i64>,
}

pub struct Member {
    pub client: Client,
    pub group: String,
    pub places: Vec<Place>,
    pub board: Rc<Board>,
}

/// A place in one generation of the group.
struct Seat {
    generation: i32,
    member_id: StrBytes,
    owned: Vec<Place>,
}

/// Why a line is left.
enum Leave {
    /// The coordinator is elsewhere, or the line is lost; the membership may still hold.
    Line,
    /// The membership does not hold any more.
    Membership,
}

impl Member {
    pub async fn run(self) {
        let mut member_id = StrBytes::default();
        while !self.client.is_leaving() {
            if let Some(address) = find_coordinator(&self.client, &self.group).await
                && let Some(mut line) = self.client.connect(&address).await
                && let Leave::Membership = self.take_part(&mut line, &mut member_id).await
            {
                member_id = StrBytes::default();
            }
            self.client.pause(50..300).await;
        }
    }

    async fn take_part(&self, line: &mut Line, member_id: &mut StrBytes) -> Leave {
        while !self.client.is_leaving() {
            let seat = match self.join(line, member_id).await {
                Ok(Some(seat)) => seat,
                // The group moves on; join again.
                Ok(None) => continue,
                Err(leave) => return leave,
            };
            if let Err(leave) = self.work(line, &seat).await {
                return leave;
            }
        }
        Leave::Line
    }

    /// What an error says about going on: `Ok` is to join again.
    fn judge(&self, error: ErrorCode) -> Result<(), Leave> {
        match error {
            ErrorCode::REBALANCE_IN_PROGRESS => Ok(()),
            ErrorCode::ILLEGAL_GENERATION | ErrorCode::UNKNOWN_MEMBER_ID => Err(Leave::Membership),
            error => {
                self.client.history.note(&format!("{} leaves its line: {error}", self.client.name));
                Err(Leave::Line)
            }
        }
    }

    async fn join(&self, line: &mut Line, member_id: &mut StrBytes) -> Result<Option<Seat>, Leave> {
        let protocol = JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(self.subscription());
        let request = JoinGroupRequest::default()
            .with_group_id(text(&self.group).into())
            .with_session_timeout_ms(6_000)
            .with_rebalance_timeout_ms(6_000)
            .with_member_id(member_id.clone())
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol]);
        let joined = line.ask(&request, JOIN_MAX).await.ok_or(Leave::Line)?;
        match ErrorCode(joined.error_code) {
            ErrorCode::NONE => {}
            ErrorCode(79) => {
                // MEMBER_ID_REQUIRED: come again with the one that was given.
                *member_id = text(&joined.member_id);
                return Ok(None);
            }
            error => return self.judge(error).map(|()| None),
        }
        *member_id = text(&joined.member_id);
        let request = SyncGroupRequest::default()
            .with_group_id(text(&self.group).into())
            .with_generation_id(joined.generation_id)
            .with_member_id(member_id.clone())
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(self.share_out(&joined));
        let synced = line.ask(&request, ASK_MAX).await.ok_or(Leave::Line)?;
        if synced.error_code != 0 {
            return self.judge(ErrorCode(synced.error_code)).map(|()| None);
        }
        let owned = self.places.iter().filter(|place| synced.assignment.contains(&letter(&self.places, place)));
        let owned: Vec<Place> = owned.cloned().collect();
        let seat = Seat { generation: joined.generation_id, member_id: member_id.clone(), owned };
        self.own(&seat);
        Ok(Some(seat))
    }

    /// One owner per partition in a generation (D1).
    fn own(&self, seat: &Seat) {
        let (history, me) = (&self.client.history, self.client.name.clone());
        let own: Vec<String> = seat.owned.iter().map(Place::to_string).collect();
        history.count("assignments");
        history.note(&format!("{me} owns {own:?} in generation {} as {}", seat.generation, seat.member_id));
        for place in &seat.owned {
            let before = self.board.owners.borrow_mut().insert((seat.generation, place.clone()), me.clone());
            if let Some(before) = before.filter(|before| *before != me) {
                history.violated(format!("{place} is owned by {before} and {me} in generation {}", seat.generation));
            }
        }
    }

    /// Heartbeats and commits until the group shares anew.
    async fn work(&self, line: &mut Line, seat: &Seat) -> Result<(), Leave> {
        let mut positions = Vec::new();
        for place in &seat.owned {
            let Some(position) = self.position(line, place).await? else { return Ok(()) };
            positions.push((place.clone(), position));
        }
        while !self.client.is_leaving() {
            self.client.pause(50..700).await;
            let request = HeartbeatRequest::default()
                .with_group_id(text(&self.group).into())
                .with_generation_id(seat.generation)
                .with_member_id(seat.member_id.clone());
            let beat = line.ask(&request, ASK_MAX).await.ok_or(Leave::Line)?;
            if beat.error_code != 0 {
                return self.judge(ErrorCode(beat.error_code));
            }
            for (place, position) in &mut positions {
                *position += 1;
                let error = self.commit(line, seat, place, *position).await?;
                if error != ErrorCode::NONE {
                    return self.judge(error);
                }
            }
        }
        Ok(())
    }

    /// Where the group stands. What was tried and never answered may still be on its way to the followers, and count later.
    async fn position(&self, line: &mut Line, place: &Place) -> Result<Option<i64>, Leave> {
        let answer = line.ask(&fetch_request(&self.group, place), ASK_MAX).await.ok_or(Leave::Line)?;
        let group = &answer.groups[0];
        if group.error_code != 0 {
            return self.judge(ErrorCode(group.error_code)).map(|()| None);
        }
        let partition = &group.topics[0].partitions[0];
        if partition.error_code != 0 {
            return self.judge(ErrorCode(partition.error_code)).map(|()| None);
        }
        let told = partition.committed_offset.max(0);
        let mut stands = self.board.stands.borrow_mut();
        let stand = stands.entry(place.clone()).or_default();
        if told != stand.committed && !stand.unanswered.contains(&told) {
            self.client.history.violated(format!(
                "committed-offset-went-back: {} stands at {told} in {place}, known is {stand:?}",
                self.group
            ));
        }
        stand.committed = told;
        stand.unanswered.retain(|tried| *tried > told);
        Ok(Some(told))
    }

    async fn commit(&self, line: &mut Line, seat: &Seat, place: &Place, offset: i64) -> Result<ErrorCode, Leave> {
        self.board.stands.borrow_mut().entry(place.clone()).or_default().unanswered.insert(offset);
        let mut request = commit_request(&self.group, place, offset);
        request.generation_id_or_member_epoch = seat.generation;
        request.member_id = seat.member_id.clone();
        let answer = line.ask(&request, ASK_MAX).await.ok_or(Leave::Line)?;
        let error = ErrorCode(answer.topics[0].partitions[0].error_code);
        if error == ErrorCode::NONE {
            self.client.history.count("commits");
            self.client.history.note(&format!("{} committed {offset} in {place}", self.client.name));
            self.board.commits.set(self.board.commits.get() + 1);
            let mut stands = self.board.stands.borrow_mut();
            let stand = stands.entry(place.clone()).or_default();
            stand.unanswered.retain(|tried| *tried > offset);
            stand.committed = offset;
        }
        Ok(error)
    }

    /// The leader's work: partitions go round among the members. Others send nothing.
    fn share_out(&self, joined: &JoinGroupResponse) -> Vec<SyncGroupRequestAssignment> {
        let members: BTreeSet<&str> = joined.members.iter().map(|member| member.member_id.as_str()).collect();
        let share = |(at, id): (usize, &&str)| {
            let mine = self.places.iter().enumerate().filter(|(number, _)| number % members.len() == at);
            let letters: Vec<u8> = mine.map(|(_, place)| letter(&self.places, place)).collect();
            SyncGroupRequestAssignment::default().with_member_id(text(id)).with_assignment(letters.into())
        };
        members.iter().enumerate().map(share).collect()
    }

    /// ConsumerProtocolSubscription v0.
    fn subscription(&self) -> Bytes {
        let topics: BTreeSet<&str> = self.places.iter().map(|place| place.topic.as_str()).collect();
        let mut bytes = BytesMut::new();
        bytes.put_i16(0);
        bytes.put_i32(i32::try_from(topics.len()).unwrap());
        for topic in topics {
            bytes.put_i16(i16::try_from(topic.len()).unwrap());
            bytes.put_slice(topic.as_bytes());
        }
        bytes.put_i32(-1);
        bytes.freeze()
    }
}

/// A place's name in assignments.
fn letter(places: &[Place], place: &Place) -> u8 {
    let at = places.iter().position(|one| one == place).unwrap();
    b'a' + u8::try_from(at).unwrap()
}
