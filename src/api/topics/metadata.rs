//! Metadata (key 3): brokers, topics, and who leads what.
//! v1 null means all topics; v4 the client may forbid auto-creation; v5 offline replicas; v7 leader epochs; v8 to v10 authorized
//! operations (KIP-430); v10 topic ids in answers, v12 in questions too (KIP-516); v13 a top-level error. A topic that is made on the
//! way is answered with its leader at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::partition_view::{PartitionView, broker_ids};
use crate::api::cluster::nodes::{self, Node};
use crate::api::cluster::text;
use crate::api::peers::active;
use crate::api::{Broker, Refused, RequestContext};
use crate::base::ids::NO_BROKER;
use crate::base::{ErrorCode, PartitionIndex, TopicId};
use crate::metadata::{Image, PartitionState, Topic, topic_name};
use crate::security::all_operations;
use crate::wire::messages::create_topics_request::CreatableTopic;
use crate::wire::messages::metadata_request::MetadataRequestTopic;
use crate::wire::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use crate::wire::messages::{BrokerId, CreateTopicsRequest, MetadataRequest, MetadataResponse, StrBytes};
use crate::wire::table::ResourceKind;

/// For topics that are made because somebody asks for them.
const AUTO_CREATE_TIMEOUT_MS: i32 = 30_000;
/// From here on a question may name topics by id.
const IDS_ASKED_FROM: i16 = 12;
/// Versions whose answers have the field for operations on the cluster.
const CLUSTER_OPERATIONS: std::ops::RangeInclusive<i16> = 8..=10;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: MetadataRequest,
) -> Result<MetadataResponse, Refused> {
    let version = context.api_version;
    let topics = request.topics.as_deref();
    if version < IDS_ASKED_FROM && topics.unwrap_or_default().iter().any(|topic| !has_name_only(topic)) {
        return Ok(ids_refused(topics.unwrap_or_default()));
    }
    let asked = Asked::of(topics, version);
    let mut refusals = Vec::new();
    if let Asked::Names(names) = &asked
        && (version < 4 || request.allow_auto_topic_creation)
        && broker.options.auto_create_topics
    {
        refusals = create_missing(broker, names).await;
    }
    // Taken after the creation, so that what was made is in it.
    let image = broker.controller.quorum().image();
    let view = View { image: &image, version, with_operations: request.include_topic_authorized_operations };
    let mut response = MetadataResponse::default()
        .with_brokers(nodes::live_nodes(&image, &broker.options, context).into_iter().map(described).collect())
        .with_controller_id(BrokerId(nodes::controller_id(&image)))
        .with_topics(view.answer(asked, &refusals));
    if version >= 2 {
        response.cluster_id = Some(text(&image.cluster_id));
    }
    if CLUSTER_OPERATIONS.contains(&version) && request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = all_operations(ResourceKind::Cluster);
    }
    Ok(response)
}

fn has_name_only(topic: &MetadataRequestTopic) -> bool {
    topic.topic_id.is_nil() && topic.name.is_some()
}

/// v10 and v11 have a place for an id in the question but do not serve it; the request is refused whole.
fn ids_refused(topics: &[MetadataRequestTopic]) -> MetadataResponse {
    let refused = |topic: &MetadataRequestTopic| {
        MetadataResponseTopic::default()
            .with_error_code(ErrorCode::INVALID_REQUEST.code())
            .with_name(Some(topic.name.clone().unwrap_or_default()))
            .with_topic_id(topic.topic_id)
    };
    MetadataResponse::default()
        .with_controller_id(BrokerId(NO_BROKER))
        .with_topics(topics.iter().map(refused).collect())
}

fn described(node: Node) -> MetadataResponseBroker {
    MetadataResponseBroker::default()
        .with_node_id(BrokerId(node.id))
        .with_host(node.host)
        .with_port(node.port)
        .with_rack(node.rack)
}

/// What the client wants to know.
enum Asked {
    All,
    /// Without repetitions, in the order of the question; `None` for an item that names nothing.
    Names(Vec<Option<StrBytes>>),
    Ids(Vec<TopicId>),
}

impl Asked {
    /// From v12 on, any id in the question makes names be ignored.
    fn of(topics: Option<&[MetadataRequestTopic]>, version: i16) -> Asked {
        let Some(topics) = topics else { return Asked::All };
        if topics.is_empty() && version == 0 {
            return Asked::All;
        }
        if topics.iter().any(|topic| !topic.topic_id.is_nil()) {
            let mut seen = BTreeSet::new();
            let ids = topics.iter().map(|topic| TopicId(topic.topic_id)).filter(|id| !id.is_zero() && seen.insert(*id));
            return Asked::Ids(ids.collect());
        }
        let mut seen = BTreeSet::new();
        let names = topics.iter().map(|topic| topic.name.as_ref().map(|name| name.0.clone()));
        Asked::Names(names.filter(|name| seen.insert(name.clone())).collect())
    }
}

/// Makes the legal names that do not exist; answers those that cannot be made, with the reason's code.
async fn create_missing(broker: &Arc<Broker>, names: &[Option<StrBytes>]) -> Vec<(String, ErrorCode)> {
    let image = broker.controller.quorum().image();
    let may_be_made = |name: &&StrBytes| {
        image.topic(name).is_none()
            && topic_name::validate(name).is_ok()
            && name.as_str() != topic_name::CLUSTER_METADATA
    };
    let missing: Vec<&StrBytes> = names.iter().flatten().filter(may_be_made).collect();
    let (internal, plain): (Vec<&StrBytes>, Vec<&StrBytes>) =
        missing.into_iter().partition(|name| topic_name::is_internal(name));
    let mut refusals = Vec::new();
    for name in internal {
        refusals.extend(broker.ensure_internal_topic(name).await.err().map(|refusal| (name.to_string(), refusal.code)));
    }
    if plain.is_empty() {
        return refusals;
    }
    let wanted = |name: &&StrBytes| {
        CreatableTopic::default()
            .with_name((*name).clone().into())
            .with_num_partitions(broker.options.partitions_default)
            .with_replication_factor(broker.options.replication_factor_default)
    };
    let topics = plain.iter().map(wanted).collect();
    let request = CreateTopicsRequest::default().with_topics(topics).with_timeout_ms(AUTO_CREATE_TIMEOUT_MS);
    match active::have_done(broker, &request).await {
        Ok(response) => {
            let codes = response.topics.into_iter().map(|topic| (topic.name.to_string(), ErrorCode(topic.error_code)));
            // Somebody else made it meanwhile: then it is there.
            let fine = [ErrorCode::NONE, ErrorCode::TOPIC_ALREADY_EXISTS];
            refusals.extend(codes.filter(|(_, code)| !fine.contains(code)));
        }
        // Clients ask again a moment later.
        Err(_) => refusals.extend(plain.iter().map(|name| (name.to_string(), ErrorCode::LEADER_NOT_AVAILABLE))),
    }
    refusals
}

/// How topics look to this client.
struct View<'a> {
    image: &'a Image,
    version: i16,
    with_operations: bool,
}

impl View<'_> {
    fn answer(&self, asked: Asked, refusals: &[(String, ErrorCode)]) -> Vec<MetadataResponseTopic> {
        match asked {
            Asked::All => self.image.topics().map(|topic| self.known(topic)).collect(),
            Asked::Names(names) => names.into_iter().map(|name| self.named(name, refusals)).collect(),
            Asked::Ids(ids) => ids.into_iter().map(|id| self.by_id(id)).collect(),
        }
    }

    fn named(&self, name: Option<StrBytes>, refusals: &[(String, ErrorCode)]) -> MetadataResponseTopic {
        let Some(name) = name else {
            return self.failed(ErrorCode::INVALID_REQUEST).with_name(Some(Default::default()));
        };
        if let Some(topic) = self.image.topic(&name) {
            return self.known(topic);
        }
        let refusal = refusals.iter().find(|(refused, _)| *refused == name.as_str());
        let error = match refusal {
            Some((_, code)) => *code,
            None if topic_name::validate(&name).is_err() => ErrorCode::INVALID_TOPIC_EXCEPTION,
            None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        };
        let internal = topic_name::is_internal(&name);
        self.failed(error).with_name(Some(name.into())).with_is_internal(internal)
    }

    fn by_id(&self, id: TopicId) -> MetadataResponseTopic {
        match self.image.topic_by_id(id) {
            Some(topic) => self.known(topic),
            None => self.failed(ErrorCode::UNKNOWN_TOPIC_ID).with_name(None).with_topic_id(id.0),
        }
    }

    fn failed(&self, error: ErrorCode) -> MetadataResponseTopic {
        let mut topic = MetadataResponseTopic::default().with_error_code(error.code());
        // Told for a name that does not exist, too, but not for an unknown id.
        if self.with_operations && self.version >= 8 && error != ErrorCode::UNKNOWN_TOPIC_ID {
            topic.topic_authorized_operations = all_operations(ResourceKind::Topic);
        }
        topic
    }

    fn known(&self, topic: &Topic) -> MetadataResponseTopic {
        let mut answer = self.failed(ErrorCode::NONE);
        answer.name = Some(text(&topic.name).into());
        answer.topic_id = topic.id.0;
        answer.is_internal = topic_name::is_internal(&topic.name);
        answer.partitions = topic.indexed().map(|(index, state)| self.partition(index, state)).collect();
        answer
    }

    fn partition(&self, index: PartitionIndex, state: &PartitionState) -> MetadataResponsePartition {
        let view = PartitionView::of(self.image, state);
        // v0 clients cannot connect to a broker that is not listed, so they are not told of it.
        let shown = |ids: &[i32]| match self.version {
            0 => broker_ids(ids.iter().filter(|id| self.image.is_live(**id))),
            _ => broker_ids(ids),
        };
        let missing = self.version == 0 && !view.offline.is_empty();
        let error = match view.error() {
            ErrorCode::NONE if missing => ErrorCode::REPLICA_NOT_AVAILABLE,
            error => error,
        };
        MetadataResponsePartition::default()
            .with_error_code(error.code())
            .with_partition_index(index)
            .with_leader_id(BrokerId(view.leader))
            .with_leader_epoch(if self.version >= 7 { state.leader_epoch } else { -1 })
            .with_replica_nodes(shown(&state.replicas))
            .with_isr_nodes(shown(&view.isr))
            .with_offline_replicas(broker_ids(&view.offline))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::api::topics::fixture::image;
    use crate::metadata::MetadataRecord;

    fn question(names: &[&str], ids: &[u128]) -> Vec<MetadataRequestTopic> {
        let named = names.iter().map(|name| MetadataRequestTopic::default().with_name(Some(text(name).into())));
        let by_id =
            ids.iter().map(|id| MetadataRequestTopic::default().with_topic_id(Uuid::from_u128(*id)).with_name(None));
        named.chain(by_id).collect()
    }

    /// Each topic as name and code.
    fn answer(topics: Option<&[MetadataRequestTopic]>, version: i16) -> Vec<(Option<String>, i16)> {
        let image = image(&[("a", 1), ("b", 2)]);
        let view = View { image: &image, version, with_operations: false };
        let shown = |topic: MetadataResponseTopic| (topic.name.map(|name| name.to_string()), topic.error_code);
        view.answer(Asked::of(topics, version), &[]).into_iter().map(shown).collect()
    }

    fn named(name: &str, code: i16) -> (Option<String>, i16) {
        (Some(name.into()), code)
    }

    #[test]
    fn an_empty_question_means_all_in_v0_and_none_later() {
        let all = [named("a", 0), named("b", 0)];
        assert_eq!(answer(Some(&[]), 0), all);
        assert_eq!(answer(Some(&[]), 1), []);
        assert_eq!(answer(None, 1), all);
    }

    #[test]
    fn names_are_answered_once_in_the_order_of_the_question() {
        let topics = question(&["b", "none", "a", "b", "a/b"], &[]);
        assert_eq!(answer(Some(&topics), 12), [named("b", 0), named("none", 3), named("a", 0), named("a/b", 17)]);
    }

    #[test]
    fn any_id_makes_names_be_ignored() {
        let topics = question(&["a"], &[2, 9]);
        assert_eq!(answer(Some(&topics), 12), [named("b", 0), (None, 100)]);
    }

    #[test]
    fn a_leader_that_is_not_alive_is_no_leader() {
        let mut image = image(&[("a", 1)]);
        let id = image.topic("a").unwrap().id;
        let state = PartitionState { leader: 2, leader_epoch: 4, ..PartitionState::new(vec![2, 1], vec![]) };
        image.apply(9, &MetadataRecord::Partition { topic_id: id, partition: 0, state }).unwrap();
        let told = |version| {
            let view = View { image: &image, version, with_operations: false };
            let topic = view.known(image.topic("a").unwrap());
            let partition = topic.partitions.into_iter().next().unwrap();
            let ids = |ids: Vec<BrokerId>| ids.into_iter().map(|id| id.0).collect::<Vec<_>>();
            let leader = (partition.error_code, partition.leader_id.0, partition.leader_epoch);
            (leader, ids(partition.replica_nodes), ids(partition.isr_nodes), ids(partition.offline_replicas))
        };
        assert_eq!(told(12), ((5, -1, 4), vec![2, 1], vec![2, 1], vec![2]));
        assert_eq!(told(0), ((5, -1, -1), vec![1], vec![1], vec![2]));
    }
}
