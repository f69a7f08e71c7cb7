//! Deleting topics, by name or (since v6) by id. A topic named in two ways in one request is left alone.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decision, Refusal};
use crate::base::{ErrorCode, TopicId};
use crate::metadata::{Image, MetadataRecord};

/// One topic as a client names it; an id of zero is no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRef {
    pub name: Option<String>,
    pub id: TopicId,
}

impl TopicRef {
    pub fn named(name: impl Into<String>) -> TopicRef {
        TopicRef { name: Some(name.into()), id: TopicId::ZERO }
    }

    pub fn id(id: TopicId) -> TopicRef {
        TopicRef { name: None, id }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteOutcome {
    pub name: Option<String>,
    pub id: TopicId,
    pub refusal: Option<Refusal>,
}

pub fn delete_topics(image: &Image, topics: &[TopicRef]) -> Decision<Vec<DeleteOutcome>> {
    let mut decision = Decision::unchanged(Vec::with_capacity(topics.len()));
    let asked = Asked::sort(topics, &mut decision.reply);
    let by_id: BTreeSet<TopicId> = asked.ids.keys().copied().collect();
    let mut named_too = BTreeSet::new();
    for (name, times) in &asked.names {
        let id = image.topic_id(name).unwrap_or(TopicId::ZERO);
        if *times > 1 {
            decision.reply.push(refused(
                Some(name),
                TopicId::ZERO,
                ErrorCode::INVALID_REQUEST,
                "Duplicate topic name.",
            ));
        } else if id.is_zero() {
            let message = "This server does not host this topic-partition.";
            decision.reply.push(refused(Some(name), id, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
        } else if by_id.contains(&id) {
            let message = "The provided topic name maps to an ID that was already supplied.";
            decision.reply.push(refused(Some(name), id, ErrorCode::INVALID_REQUEST, message));
            named_too.insert(id);
        } else {
            remove(&mut decision, name, id);
        }
    }
    for (id, times) in asked.ids.into_iter().filter(|(id, _)| !named_too.contains(id)) {
        if times > 1 {
            decision.reply.push(refused(None, id, ErrorCode::INVALID_REQUEST, "Duplicate topic id."));
        } else if let Some(name) = image.topic_name(id) {
            remove(&mut decision, name, id);
        } else {
            let message = "This server does not host this topic ID.";
            decision.reply.push(refused(None, id, ErrorCode::UNKNOWN_TOPIC_ID, message));
        }
    }
    decision
}

/// The request sorted into names and ids, each with how often it came.
struct Asked<'a> {
    names: BTreeMap<&'a str, usize>,
    ids: BTreeMap<TopicId, usize>,
}

impl<'a> Asked<'a> {
    fn sort(topics: &'a [TopicRef], refusals: &mut Vec<DeleteOutcome>) -> Asked<'a> {
        let mut asked = Asked { names: BTreeMap::new(), ids: BTreeMap::new() };
        for topic in topics {
            match (topic.name.as_deref(), topic.id.is_zero()) {
                (Some(name), true) => *asked.names.entry(name).or_default() += 1,
                (None, false) => *asked.ids.entry(topic.id).or_default() += 1,
                (name, id_is_zero) => {
                    let message = if id_is_zero {
                        "Neither topic name nor id were specified."
                    } else {
                        "You may not specify both topic name and topic id."
                    };
                    refusals.push(refused(name, topic.id, ErrorCode::INVALID_REQUEST, message));
                }
            }
        }
        asked
    }
}

fn remove(decision: &mut Decision<Vec<DeleteOutcome>>, name: &str, id: TopicId) {
    decision.records.push(MetadataRecord::TopicRemoved { id });
    decision.reply.push(DeleteOutcome { name: Some(name.to_owned()), id, refusal: None });
}

fn refused(name: Option<&str>, id: TopicId, code: ErrorCode, message: &str) -> DeleteOutcome {
    DeleteOutcome { name: name.map(str::to_owned), id, refusal: Some(Refusal::new(code, message)) }
}
