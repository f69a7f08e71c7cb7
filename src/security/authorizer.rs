//! May they? The question has its final form (who, what, on which resource); the only answer so far is yes.

use crate::security::Principal;
use crate::wire::table::Operation::{
    Alter, AlterConfigs, ClusterAction, Create, Delete, Describe, DescribeConfigs, DescribeTokens, IdempotentWrite,
    Read, Write,
};
use crate::wire::table::{Operation, ResourceKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
}

/// Decides access. Pure: rules will arrive with the metadata image, not be fetched.
#[derive(Clone, Copy, Debug, Default)]
pub enum Authorizer {
    /// No `authorizer.class.name`: everybody may do everything, as in Kafka.
    #[default]
    AllowAll,
}

impl Authorizer {
    pub fn decide(self, _who: &Principal, _what: Operation, _kind: ResourceKind, _name: &str) -> Decision {
        match self {
            Authorizer::AllowAll => Decision::Allow,
        }
    }

    /// What `who` may do to a resource, as the bit field of KIP-430 (bit n for the operation with code n).
    pub fn authorized_operations(self, who: &Principal, kind: ResourceKind, name: &str) -> i32 {
        let allowed = |what: &&Operation| self.decide(who, **what, kind, name) == Decision::Allow;
        operations_of(kind).iter().filter(allowed).fold(0, |field, what| field | bit(*what))
    }
}

/// The bit field in an answer to somebody who did not ask for it.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// Everything that can be done to a resource of this kind, as a bit field: what an answer says while there is no authorizer.
pub const fn all_operations(kind: ResourceKind) -> i32 {
    let operations = operations_of(kind);
    let (mut field, mut at) = (0, 0);
    while at < operations.len() {
        field |= bit(operations[at]);
        at += 1;
    }
    field
}

const fn bit(operation: Operation) -> i32 {
    1 << (operation as i8)
}

/// The operations that exist for a kind of resource.
const fn operations_of(kind: ResourceKind) -> &'static [Operation] {
    match kind {
        ResourceKind::Topic => &[Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs],
        ResourceKind::Group => &[Read, Delete, Describe, DescribeConfigs, AlterConfigs],
        ResourceKind::Cluster => {
            &[Create, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite]
        }
        ResourceKind::TransactionalId => &[Write, Describe],
        ResourceKind::DelegationToken => &[Describe],
        ResourceKind::User => &[Operation::CreateTokens, DescribeTokens],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rules_everything_is_allowed_as_kafka_reports_it() {
        let operations = |kind| {
            let allowed = Authorizer::default().authorized_operations(&Principal::anonymous(), kind, "x");
            assert_eq!(allowed, all_operations(kind));
            allowed
        };
        assert_eq!(operations(ResourceKind::Topic), 3576);
        assert_eq!(operations(ResourceKind::Group), 3400);
        assert_eq!(operations(ResourceKind::Cluster), 8096);
    }
}
