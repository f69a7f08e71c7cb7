//! From a frame to its handler: header, version, shape, then one line per API.
//!
//! Requests whose effect later requests of the same connection may rely on are *barriers*: they hold those back until they are
//! answered. Produce, Fetch, look-ups and offset commits are not; that is where this broker overtakes one that works on a single
//! request of a connection at a time.

use std::sync::Arc;

use bytes::Bytes;

use crate::api::answer::{Answer, Response};
use crate::api::context::{ConnectionInfo, Door, RequestContext};
use crate::api::outcomes::Outcomes;
use crate::api::peers::forward::{self, Unanswered};
use crate::api::peers::{ensure_topic, give_up_copies, look_at_copy, peer_hello, raft};
use crate::api::{Broker, Refused, brokers, cluster, configs, data, groups, refused, topics, transactions};
use crate::base::ErrorCode;
use crate::controller::doubting;
use crate::telemetry::{Answered, Reason};
use crate::wire::api_versions;
use crate::wire::decode::decode_request;
use crate::wire::encode::encode_response;
use crate::wire::header::{self, HeaderError, HeaderFault, RequestHeader};
use crate::wire::messages::{IncrementalAlterConfigsRequest, RequestBody, ResponseBody};
use crate::wire::private::{PrivateApi, RawBody};
use crate::wire::table::{Api, Listener, keys};

/// A request that has been started.
pub struct Started {
    pub context: RequestContext,
    pub answer: Answer,
    /// Requests behind it wait until it is answered.
    pub barrier: bool,
}

/// Starts the request in `frame`. An error closes the connection.
pub fn start(
    broker: &Arc<Broker>,
    connection: &Arc<ConnectionInfo>,
    frame: Bytes,
    now_nanos: u64,
) -> Result<Started, (Option<Box<RequestContext>>, Refused)> {
    let frame = detached(frame);
    let (header, body) = header::parse(frame.clone()).map_err(|error| unreadable(connection, &error, now_nanos))?;
    let context = RequestContext {
        connection: connection.clone(),
        api_key: header.api.key,
        api_version: header.version,
        correlation_id: header.correlation_id,
        client_id: header.client_id.as_deref().map(Arc::from),
        received_nanos: now_nanos,
    };
    let request = Request { header, body, frame };
    let barrier = is_barrier(request.header.api.key) && connection.peer_node.get().is_none();
    let answered = may_ask(connection, request.header.api).and_then(|()| {
        if broker.gate.is_open() || !waits_at_gate(connection, request.header.api) {
            answer_or_hand_on(broker, &context, request)
        } else {
            Ok(answer_when_open(broker, &context, request))
        }
    });
    match answered {
        Ok(answer) => Ok(Started { context, answer, barrier }),
        Err(refused) => Err((Some(Box::new(context)), refused)),
    }
}

/// A request that was read as far as its header.
struct Request {
    header: RequestHeader,
    body: Bytes,
    /// All of it, for handing on.
    frame: Bytes,
}

/// Whether this connection may ask for this API at all.
fn may_ask(connection: &ConnectionInfo, api: &Api) -> Result<(), Refused> {
    let refused = |why: &str| Err(Refused::because(Reason::UnknownApi, format!("{} {why}", api.name)));
    let is_node = connection.peer_node.get().is_some();
    if api.is_for_nodes() && !is_node && api.key != PrivateApi::PeerHello.key() {
        return refused("is for nodes of the cluster, and this connection did not begin with PeerHello");
    }
    let is_for_brokers = api.listener == Listener::Broker || api.key == keys::FETCH;
    if connection.door == Door::Controller && is_for_brokers && !is_node {
        return refused("is not answered on a controller's listener");
    }
    Ok(())
}

/// Until this node knows what it leads, clients of brokers wait; nodes do not, or it would never come to know.
fn waits_at_gate(connection: &ConnectionInfo, api: &Api) -> bool {
    let is_node = connection.peer_node.get().is_some() || api.key == PrivateApi::PeerHello.key();
    connection.door == Door::Broker && !is_node && connection.forwarded_by.is_none()
}

fn answer_when_open(broker: &Arc<Broker>, context: &RequestContext, request: Request) -> Answer {
    let (broker, context) = (broker.clone(), context.clone());
    Answer::Later(Box::pin(async move {
        broker.gate.opened().await;
        match answer_or_hand_on(&broker, &context, request)? {
            Answer::Now(response) => Ok(Some(response)),
            Answer::Nothing => Ok(None),
            Answer::Later(later) => later.await,
            Answer::Close(refused) => Err(refused),
        }
    }))
}

fn answer_or_hand_on(broker: &Arc<Broker>, context: &RequestContext, request: Request) -> Result<Answer, Refused> {
    let Request { header, body, frame } = request;
    if !header.api.on_controller || context.connection.forwarded_by.is_some() {
        return answer(broker, context, &header, body);
    }
    if broker.is_active_controller() || concerns_this_node(context, &body)? {
        return Ok(once_applied(broker, answer(broker, context, &header, body)?));
    }
    header
        .api
        .check(header.version, &body)
        .map_err(|error| Refused::because(Reason::MalformedRequest, error.to_string()))?;
    let (broker, context) = (broker.clone(), context.clone());
    Ok(Answer::Later(Box::pin(async move {
        match forward::hand_on(&broker, &context, &frame).await? {
            Ok(response) => Ok(Some(response)),
            // The API's own way of saying that this node is not the active controller.
            Err(Unanswered::NoController) => answer_here(&broker, &context, &header, body).await,
            // And of saying that it is not known what came of it.
            Err(Unanswered::Unknown) => doubting(answer_here(&broker, &context, &header, body)).await,
        }
    })))
}

async fn answer_here(
    broker: &Arc<Broker>,
    context: &RequestContext,
    header: &RequestHeader,
    body: Bytes,
) -> Result<Option<Response>, Refused> {
    match answer(broker, context, header, body)? {
        Answer::Now(response) => Ok(Some(response)),
        Answer::Nothing => Ok(None),
        Answer::Later(later) => later.await,
        Answer::Close(refused) => Err(refused),
    }
}

/// A change is answered when this node has acted on it, too: a topic that was made can be written to at once.
fn once_applied(broker: &Arc<Broker>, answer: Answer) -> Answer {
    let Answer::Later(later) = answer else { return answer };
    let broker = broker.clone();
    Answer::Later(Box::pin(async move {
        let response = later.await?;
        broker.wait_applied(broker.image().offset, forward::CATCH_UP_MAX).await;
        Ok(response)
    }))
}

/// Log levels are each node's own.
fn concerns_this_node(context: &RequestContext, body: &Bytes) -> Result<bool, Refused> {
    if context.api_key != keys::INCREMENTAL_ALTER_CONFIGS {
        return Ok(false);
    }
    let request: IncrementalAlterConfigsRequest = decode(context, body.clone())?;
    Ok(request.resources.iter().any(|resource| resource.resource_type == configs::BROKER_LOGGER))
}

/// Only Produce keeps slices of the read buffer, for as long as its append takes. What others hold on to gets memory of its own, so
/// that a small request that waits does not pin a large buffer.
fn detached(frame: Bytes) -> Bytes {
    if frame.starts_with(&keys::PRODUCE.to_be_bytes()) { frame } else { Bytes::copy_from_slice(&frame) }
}

fn unreadable(
    connection: &Arc<ConnectionInfo>,
    error: &HeaderError,
    now_nanos: u64,
) -> (Option<Box<RequestContext>>, Refused) {
    let reason = match error.fault {
        HeaderFault::TooShort => Reason::InvalidFrame,
        HeaderFault::UnknownKey | HeaderFault::NotServed => Reason::UnknownApi,
        HeaderFault::UnsupportedVersion => Reason::UnsupportedVersion,
        HeaderFault::ClientIdLength(_) | HeaderFault::Tags => Reason::InvalidHeader,
    };
    let context = error.api_key.map(|api_key| {
        Box::new(RequestContext {
            connection: connection.clone(),
            api_key,
            api_version: error.version.unwrap_or(-1),
            correlation_id: 0,
            client_id: error.client_id.as_deref().map(Arc::from),
            received_nanos: now_nanos,
        })
    });
    (context, Refused::because(reason, error.to_string()))
}

fn is_barrier(key: i16) -> bool {
    !matches!(
        key,
        keys::PRODUCE
            | keys::FETCH
            | keys::LIST_OFFSETS
            | keys::OFFSET_COMMIT
            | keys::OFFSET_FETCH
            | keys::HEARTBEAT
            | keys::API_VERSIONS
    )
}

/// Whether a request of this API may be waiting for what others do (new records, other members) rather than for work of its own.
pub fn waits_for_others(key: i16) -> bool {
    matches!(key, keys::FETCH | keys::JOIN_GROUP | keys::SYNC_GROUP)
}

fn decode<Q: RequestBody>(context: &RequestContext, body: Bytes) -> Result<Q, Refused> {
    decode_request(context.api_version, body)
        .map_err(|error| Refused::because(Reason::MalformedRequest, error.to_string()))
}

/// The answer in bytes; its outcomes are counted.
pub fn encode<R: ResponseBody + Outcomes>(
    broker: &Broker,
    api: &'static Api,
    context: &RequestContext,
    response: &R,
) -> Result<Response, Refused> {
    let metrics = broker.telemetry.api(api.key, api.name);
    response.each(&mut |code| metrics.outcome(ErrorCode(code)));
    encode_response(api, context.api_version, context.correlation_id, response)
        .map(Response::Whole)
        .map_err(|error| Refused::because(Reason::Internal, format!("the answer cannot be encoded: {error}")))
}

/// Runs an async handler on a request.
macro_rules! later {
    ($broker:ident, $context:ident, $api:ident, $body:ident, $handler:path) => {{
        let request = decode($context, $body)?;
        let (broker, context, api) = ($broker.clone(), $context.clone(), $api);
        Answer::Later(Box::pin(async move {
            let response = $handler(&broker, &context, request).await?;
            encode(&broker, api, &context, &response).map(Some)
        }))
    }};
}

/// Runs a handler of what nodes say to one another.
macro_rules! between_nodes {
    ($broker:ident, $context:ident, $api:ident, |$held:ident, $asked:ident| $work:expr) => {{
        let ($held, $asked, api) = ($broker.clone(), $context.clone(), $api);
        Answer::Later(Box::pin(async move {
            let body: RawBody = $work.await?;
            encode_response(api, $asked.api_version, $asked.correlation_id, &body)
                .map(|bytes| Some(Response::Whole(bytes)))
                .map_err(|error| Refused::because(Reason::Internal, error.to_string()))
        }))
    }};
}

fn answer_node(
    broker: &Arc<Broker>,
    context: &RequestContext,
    api: &'static Api,
    private: PrivateApi,
    body: Bytes,
) -> Answer {
    match private {
        PrivateApi::PeerHello => {
            between_nodes!(broker, context, api, |held, asked| peer_hello::handle(&held, &asked, body))
        }
        PrivateApi::Raft => between_nodes!(broker, context, api, |held, _asked| raft::handle(&held, body)),
        PrivateApi::Forward => between_nodes!(broker, context, api, |held, asked| forward::handle(&held, &asked, body)),
        PrivateApi::EnsureTopic => {
            between_nodes!(broker, context, api, |held, _asked| ensure_topic::handle(&held, body))
        }
        PrivateApi::GiveUpCopies => {
            between_nodes!(broker, context, api, |held, asked| give_up_copies::handle(&held, &asked, body))
        }
        PrivateApi::LookAtCopy => {
            between_nodes!(broker, context, api, |held, _asked| look_at_copy::handle(&held, body))
        }
    }
}

/// Runs a group handler, which wants the coordinator and what the metadata knows rather than the broker.
macro_rules! group {
    ($broker:ident, $context:ident, $api:ident, $body:ident, |$request:ident, $image:ident| $work:block) => {{
        let $request = decode($context, $body)?;
        let ($broker, $context, api) = ($broker.clone(), $context.clone(), $api);
        Answer::Later(Box::pin(async move {
            #[allow(unused_variables)]
            let $image = $broker.image();
            let response = $work;
            encode(&$broker, api, &$context, &response).map(Some)
        }))
    }};
}

fn answer(
    broker: &Arc<Broker>,
    context: &RequestContext,
    header: &RequestHeader,
    body: Bytes,
) -> Result<Answer, Refused> {
    let api = header.api;
    if header.needs_version_fallback() {
        let bytes = api_versions::unsupported_version(api, header.correlation_id)
            .map_err(|error| Refused::because(Reason::Internal, error.to_string()))?;
        return Ok(Answer::Now(Response::Whole(bytes)));
    }
    if let Some(private) = PrivateApi::of_key(api.key) {
        return Ok(answer_node(broker, context, api, private, body));
    }
    Ok(match api.key {
        keys::PRODUCE => data::produce::handle(broker, context, api, decode(context, body)?),
        keys::FETCH => data::fetch::handle(broker, context, &decode(context, body)?),
        keys::LIST_OFFSETS => later!(broker, context, api, body, data::list_offsets::handle),
        keys::DELETE_RECORDS => later!(broker, context, api, body, data::delete_records::handle),
        keys::OFFSET_FOR_LEADER_EPOCH => later!(broker, context, api, body, data::offset_for_leader_epoch::handle),
        keys::INIT_PRODUCER_ID => later!(broker, context, api, body, data::init_producer_id::handle),
        keys::DESCRIBE_PRODUCERS => later!(broker, context, api, body, data::describe_producers::handle),

        keys::METADATA => later!(broker, context, api, body, topics::metadata::handle),
        keys::CREATE_TOPICS => later!(broker, context, api, body, topics::create_topics::handle),
        keys::DELETE_TOPICS => later!(broker, context, api, body, topics::delete_topics::handle),
        keys::CREATE_PARTITIONS => later!(broker, context, api, body, topics::create_partitions::handle),
        keys::DESCRIBE_TOPIC_PARTITIONS => {
            later!(broker, context, api, body, topics::describe_topic_partitions::handle)
        }

        keys::API_VERSIONS => later!(broker, context, api, body, cluster::api_versions::handle),
        keys::DESCRIBE_CLUSTER => later!(broker, context, api, body, cluster::describe_cluster::handle),
        keys::ALTER_REPLICA_LOG_DIRS => later!(broker, context, api, body, cluster::alter_replica_log_dirs::handle),
        keys::DESCRIBE_LOG_DIRS => later!(broker, context, api, body, cluster::describe_log_dirs::handle),
        keys::DESCRIBE_QUORUM => later!(broker, context, api, body, cluster::describe_quorum::handle),
        keys::DESCRIBE_ACLS => later!(broker, context, api, body, cluster::describe_acls::handle),
        keys::FIND_COORDINATOR => later!(broker, context, api, body, cluster::find_coordinator::handle),
        keys::UPDATE_FEATURES => later!(broker, context, api, body, cluster::update_features::handle),
        keys::UNREGISTER_BROKER => later!(broker, context, api, body, cluster::unregister_broker::handle),
        keys::UNREGISTER_CONTROLLER => later!(broker, context, api, body, cluster::unregister_controller::handle),
        keys::ADD_RAFT_VOTER => later!(broker, context, api, body, cluster::raft_voters::handle_add),
        keys::REMOVE_RAFT_VOTER => later!(broker, context, api, body, cluster::raft_voters::handle_remove),

        keys::DESCRIBE_CONFIGS => later!(broker, context, api, body, configs::describe_configs::handle),
        keys::ALTER_CONFIGS => later!(broker, context, api, body, configs::alter_configs::handle),
        keys::INCREMENTAL_ALTER_CONFIGS => {
            later!(broker, context, api, body, configs::incremental_alter_configs::handle)
        }
        keys::LIST_CONFIG_RESOURCES => later!(broker, context, api, body, configs::list_config_resources::handle),

        keys::ELECT_LEADERS => later!(broker, context, api, body, topics::elect_leaders::handle),
        keys::ALTER_PARTITION_REASSIGNMENTS => {
            later!(broker, context, api, body, topics::alter_partition_reassignments::handle)
        }
        keys::LIST_PARTITION_REASSIGNMENTS => {
            later!(broker, context, api, body, topics::list_partition_reassignments::handle)
        }

        keys::ALTER_PARTITION => later!(broker, context, api, body, brokers::alter_partition::handle),
        keys::BROKER_REGISTRATION => later!(broker, context, api, body, brokers::broker_registration::handle),
        keys::BROKER_HEARTBEAT => later!(broker, context, api, body, brokers::broker_heartbeat::handle),
        keys::ALLOCATE_PRODUCER_IDS => later!(broker, context, api, body, brokers::allocate_producer_ids::handle),
        keys::ASSIGN_REPLICAS_TO_DIRS => later!(broker, context, api, body, brokers::assign_replicas_to_dirs::handle),

        keys::JOIN_GROUP => group!(broker, context, api, body, |request, image| {
            let response = groups::join_group::handle(&broker.groups, &context, request).await;
            report_join(&broker, &context, ErrorCode(response.error_code));
            response
        }),
        keys::SYNC_GROUP => group!(broker, context, api, body, |request, image| {
            groups::sync_group::handle(&broker.groups, &context, request).await
        }),
        keys::HEARTBEAT => {
            let request = decode(context, body)?;
            Answer::Now(encode(broker, api, context, &groups::heartbeat::handle(&broker.groups, &request))?)
        }
        keys::LEAVE_GROUP => group!(broker, context, api, body, |request, image| {
            groups::leave_group::handle(&broker.groups, &context, request).await
        }),
        keys::OFFSET_COMMIT => group!(broker, context, api, body, |request, image| {
            groups::offset_commit::handle(&broker.groups, &image, &context, &request).await
        }),
        keys::OFFSET_FETCH => group!(broker, context, api, body, |request, image| {
            groups::offset_fetch::handle(&broker.groups, &image, &context, request).await
        }),
        keys::OFFSET_DELETE => group!(broker, context, api, body, |request, image| {
            groups::offset_delete::handle(&broker.groups, &image, &request).await
        }),
        keys::LIST_GROUPS => {
            let request = decode(context, body)?;
            Answer::Now(encode(broker, api, context, &groups::list_groups::handle(&broker.groups, context, &request))?)
        }
        keys::DESCRIBE_GROUPS => {
            let request = decode(context, body)?;
            Answer::Now(encode(
                broker,
                api,
                context,
                &groups::describe_groups::handle(&broker.groups, context, &request),
            )?)
        }
        keys::CONSUMER_GROUP_DESCRIBE => {
            let request = decode(context, body)?;
            Answer::Now(encode(
                broker,
                api,
                context,
                &groups::consumer_group_describe::handle(&broker.groups, &request),
            )?)
        }
        keys::DELETE_GROUPS => group!(broker, context, api, body, |request, image| {
            groups::delete_groups::handle(&broker.groups, request).await
        }),

        keys::DESCRIBE_TRANSACTIONS => later!(broker, context, api, body, transactions::describe_transactions::handle),
        keys::LIST_TRANSACTIONS => later!(broker, context, api, body, transactions::list_transactions::handle),

        _ => return Err(Refused::because(Reason::UnknownApi, format!("{} is not served", api.name))),
    })
}

/// A member that cannot join as it is leaves a line. What a rebalance or a restart brings with it does not.
fn report_join(broker: &Broker, context: &RequestContext, error: ErrorCode) {
    let why = match error {
        ErrorCode::INVALID_GROUP_ID => "the group's name is not legal",
        ErrorCode::INVALID_SESSION_TIMEOUT => {
            "session.timeout.ms is not between group.min.session.timeout.ms and group.max.session.timeout.ms"
        }
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL => "the member has no assignor in common with its group",
        ErrorCode::GROUP_MAX_SIZE_REACHED => "group.max.size is reached",
        ErrorCode::FENCED_INSTANCE_ID => "another member has its group.instance.id",
        _ => return,
    };
    refused::report_answered(broker, context, Reason::InvalidGroupMember, &format!("{error}: {why}"));
}

/// Counts a request whose answer is ready.
pub fn observe(broker: &Broker, context: &RequestContext, request_bytes: usize, response: Option<&Response>, now: u64) {
    let name = crate::wire::table::lookup(context.api_key).map_or("unknown", |api| api.name);
    broker.telemetry.api(context.api_key, name).answered(Answered {
        version: context.api_version,
        nanos: now.saturating_sub(context.received_nanos),
        request_bytes,
        response_bytes: response.map_or(0, Response::size_bytes),
    });
}
