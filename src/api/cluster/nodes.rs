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

/// Live brokers that have the client's listener, or while none is live, all that are known.
pub fn live_nodes(image: &Image, options: &BrokerOptions, context: &RequestContext) -> Vec<Node> {
    live_or_known(image).into_iter().filter_map(|broker| node(broker, options, context)).collect()
}

/// When all nodes start at once, the first of them answer before any is live. Whoever is told of no broker forgets those it knew, and
/// has nobody to ask again: clients of librdkafka from 2.10 on then stand still for ever.
fn live_or_known(image: &Image) -> Vec<&BrokerRegistration> {
    let live: Vec<&BrokerRegistration> = image.live_brokers().map(|broker| &**broker).collect();
    if live.is_empty() { image.brokers().map(|broker| &**broker).collect() } else { live }
}

/// The node that is told to clients as the controller: always a live one, so that they can send admin requests there.
pub fn controller_id(image: &Image) -> BrokerId {
    if image.is_live(image.controller_id) {
        return image.controller_id;
    }
    image.live_brokers().next().map_or(NO_BROKER, |broker| broker.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::MetadataRecord;

    #[test]
    fn while_no_broker_is_live_clients_are_told_of_those_that_are_known() {
        let mut image = Image::empty();
        let mut register = |id, fenced| {
            let registration = BrokerRegistration { id, fenced, ..BrokerRegistration::default() };
            image.apply(image.offset + 1, &MetadataRecord::Broker(registration)).unwrap();
            live_or_known(&image).iter().map(|broker| broker.id).collect::<Vec<_>>()
        };
        assert_eq!(register(1, true), [1]);
        assert_eq!(register(2, true), [1, 2]);
        assert_eq!(register(2, false), [2]);
    }
}
