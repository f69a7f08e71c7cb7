//! What administrators see of a classic group (DescribeGroups, ListGroups).

use std::sync::Arc;

use super::{ClassicGroup, Phase};
use crate::coordinator::group::words::{GroupDescription, GroupListing, MemberDescription};

impl ClassicGroup {
    /// Protocol and subscriptions are shown of a settled group only: while it rebalances they may change any moment.
    pub fn describe(&self) -> GroupDescription {
        let shown_protocol = match self.phase {
            Phase::Stable => self.protocol.clone(),
            _ => None,
        };
        let members = self
            .members
            .iter()
            .map(|(member_id, member)| MemberDescription {
                member_id: member_id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                metadata: shown_protocol.as_deref().map(|protocol| member.metadata(protocol)).unwrap_or_default(),
                assignment: member.assignment.clone(),
            })
            .collect();
        GroupDescription {
            state: self.phase.name(),
            protocol_type: self.shown_protocol_type(),
            protocol: shown_protocol.unwrap_or_else(|| "".into()),
            members,
        }
    }

    pub fn list(&self, group: &Arc<str>) -> GroupListing {
        GroupListing {
            group: group.clone(),
            protocol_type: self.shown_protocol_type(),
            state: self.phase.name(),
            kind: "classic",
        }
    }

    fn shown_protocol_type(&self) -> Arc<str> {
        self.protocol_type.clone().unwrap_or_else(|| "".into())
    }
}
