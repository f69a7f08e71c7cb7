//! The brokers as one client sees them: by the listener it came through, and this node by the address it reached us by when none is
//! advertised.

use std::sync::Arc;

use crate::api::{BrokerOptions, RequestContext};
use crate::base::BrokerId;
use crate::base::ids::NO_BROKER;
use crate::metadata::{BrokerRegistration, Image};
use crate::wire::messages::StrBytes;

/// A broker that the client can connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: BrokerId,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
    pub fenced: bool,
}

/// Where the client behind `context` reaches a broker; `None` when that broker has no such listener.
pub fn node(broker: &BrokerRegistration, options: &BrokerOptions, context: &RequestContext) -> Option<Node> {
    let (host, port): (Arc<str>, u16) = if broker.id == options.node_id {
        options.endpoint_for(context)
    } else {
        let endpoint = broker.endpoint(&context.connection.listener)?;
        match endpoint.host.as_str() {
            // It advertises no host, so it can only be where this client reached a broker already.
            "" => (context.connection.local.ip().to_string().into(), endpoint.port),
            host => (host.into(), endpoint.port),
        }
    };
    Some(Node {
        id: broker.id,
        host: StrBytes::from_string(host.to_string()),
        port: i32::from(port),
        rack: broker.rack.as_ref().map(|rack| StrBytes::from_string(rack.clone())),
        fenced: broker.fenced,
    })
}

/// Live brokers that have the client's listener.
pub fn live_nodes(image: &Image, options: &BrokerOptions, context: &RequestContext) -> Vec<Node> {
    image.live_brokers().filter_map(|broker| node(broker, options, context)).collect()
}

/// The node that is told to clients as the controller: always a live one, so that they can send admin requests there.
pub fn controller_id(image: &Image) -> BrokerId {
    if image.is_live(image.controller_id) {
        return image.controller_id;
    }
    image.live_brokers().next().map_or(NO_BROKER, |broker| broker.id)
}
