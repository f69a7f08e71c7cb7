//! StreamsGroupTopologyDescriptionUpdateRequest v0. A member describes the topology that its group runs.

use super::codec::message;
use crate::wire::messages::{GroupId, StrBytes};

message! {
    StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: GroupId;
        member_id: StrBytes;
        topology_epoch: i32;
        topology_description: TopologyDescription;
    }

    TopologyDescription {
        subtopologies: Vec<TopologyDescriptionSubtopology>;
        global_stores: Vec<TopologyDescriptionGlobalStore>;
    }

    TopologyDescriptionSubtopology {
        subtopology_id: StrBytes;
        nodes: Vec<TopologyDescriptionNode>;
    }

    TopologyDescriptionNode {
        name: StrBytes;
        node_type: i8;
        source_topics: Vec<StrBytes>;
        sink_topic: Option<StrBytes>;
        stores: Vec<StrBytes>;
        successors: Vec<StrBytes>;
    }

    TopologyDescriptionGlobalStore {
        source: TopologyDescriptionNode;
        processor: TopologyDescriptionNode;
    }
}
