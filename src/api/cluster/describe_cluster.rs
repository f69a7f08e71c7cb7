//! DescribeCluster (key 60): the brokers of the cluster and its controller.
//! v1 adds the endpoint type (KIP-919), v2 fenced brokers (KIP-1073). Controllers are not described on a broker's listener.

use std::sync::Arc;

use super::nodes::{self, Node};
use super::text;
use crate::api::{Broker, Door, Refused, RequestContext};
use crate::base::ErrorCode;
use crate::base::ids::NO_BROKER;
use crate::quorum::VoterDescription;
use crate::security::{OPERATIONS_NOT_ASKED, all_operations};
use crate::wire::messages::describe_cluster_response::DescribeClusterBroker;
use crate::wire::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use crate::wire::table::ResourceKind;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub async fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: DescribeClusterRequest,
) -> Result<DescribeClusterResponse, Refused> {
    let error = match (request.endpoint_type, context.connection.door) {
        (BROKERS, Door::Broker) | (CONTROLLERS, Door::Controller) => None,
        (CONTROLLERS, Door::Broker) => Some((
            ErrorCode::MISMATCHED_ENDPOINT_TYPE,
            "This is a broker's listener; controllers are described on a controller's listener".to_owned(),
        )),
        (BROKERS, Door::Controller) => Some((
            ErrorCode::MISMATCHED_ENDPOINT_TYPE,
            "This is a controller's listener; brokers are described on a broker's listener".to_owned(),
        )),
        (other, _) => Some((ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, format!("Unsupported endpoint type {other}"))),
    };
    if let Some((code, sentence)) = error {
        return Ok(DescribeClusterResponse::default()
            .with_error_code(code.code())
            .with_error_message(Some(text(&sentence)))
            .with_controller_id(BrokerId(NO_BROKER)));
    }
    if context.connection.door == Door::Controller {
        return Ok(controllers(broker));
    }
    let image = broker.controller.quorum().image();
    let shown = image.brokers().filter(|one| !one.fenced || request.include_fenced_brokers);
    let brokers = shown.filter_map(|one| nodes::node(one, &broker.options, context)).map(described).collect();
    let asked = request.include_cluster_authorized_operations;
    let operations = if asked { all_operations(ResourceKind::Cluster) } else { OPERATIONS_NOT_ASKED };
    Ok(DescribeClusterResponse::default()
        .with_cluster_id(text(&image.cluster_id))
        .with_controller_id(BrokerId(nodes::controller_id(&image)))
        .with_brokers(brokers)
        .with_cluster_authorized_operations(operations))
}

/// The voters, and who of them is the active controller (KIP-919).
fn controllers(broker: &Broker) -> DescribeClusterResponse {
    let description = broker.controller.quorum().describe();
    let voter = |voter: &VoterDescription| {
        let address = voter.address.clone().unwrap_or_default();
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(voter.id))
            .with_host(text(&address.host))
            .with_port(address.port.into())
            .with_rack(None)
    };
    DescribeClusterResponse::default()
        .with_endpoint_type(CONTROLLERS)
        .with_cluster_id(text(&broker.image().cluster_id))
        .with_controller_id(BrokerId(description.leader_id))
        .with_brokers(description.voters.iter().map(voter).collect())
}

fn described(node: Node) -> DescribeClusterBroker {
    DescribeClusterBroker::default()
        .with_broker_id(BrokerId(node.id))
        .with_host(node.host)
        .with_port(node.port)
        .with_rack(node.rack)
        .with_is_fenced(node.fenced)
}
