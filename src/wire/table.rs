//! The one table of APIs: key, name, versions, shape of the request, listener, what authorization it needs and whether we serve it.
//! Everything that depends on an API key reads it from here, so that ApiVersions can never list what is not served.

use super::private;
use super::shape::{Field, cluster, configs, data, groups, nodes, security, share, streams, topics, transactions};
use super::shape::{ShapeError, ShapeFault, check_body};
use Operation::{
    Alter, AlterConfigs, ClusterAction, Create, CreateTokens, Delete, Describe, DescribeConfigs, DescribeTokens,
    IdempotentWrite, Read, Write,
};
use ResourceKind::{Cluster, DelegationToken, Group, Topic, TransactionalId, User};

/// What an access rule speaks about, with Kafka's codes (`ResourceType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum ResourceKind {
    Topic = 2,
    Group = 3,
    Cluster = 4,
    TransactionalId = 5,
    DelegationToken = 6,
    User = 7,
}

/// What an access rule allows or denies, with Kafka's codes (`AclOperation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Delete = 6,
    Alter = 7,
    Describe = 8,
    ClusterAction = 9,
    DescribeConfigs = 10,
    AlterConfigs = 11,
    IdempotentWrite = 12,
    CreateTokens = 13,
    DescribeTokens = 14,
}

/// Whom the API is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Clients, on listeners of brokers.
    Broker,
    /// Clients, on listeners of controllers too.
    BrokerAndController,
    /// Brokers that ask the active controller: Kafka's controller-only APIs. Clients never see them.
    Controller,
    /// Nodes of this software among themselves, see [`private`].
    Nodes,
}

#[derive(Debug)]
pub struct Api {
    pub key: i16,
    /// Kafka's name, as in logs and metric labels.
    pub name: &'static str,
    /// The versions we decode, both ends included.
    pub version_min: i16,
    pub version_max: i16,
    /// The minimum that ApiVersions shows: lower than `version_min` for Produce (KAFKA-18659), whose old versions are refused.
    pub advertised_min: i16,
    /// First version with compact lengths and tagged fields (KIP-482) in request and response; `i16::MAX` for none.
    pub flexible_from: i16,
    pub listener: Listener,
    /// What the principal needs, per resource that the request names; empty where everybody may ask.
    pub authorization: &'static [(ResourceKind, Operation)],
    /// Whether this build answers it. Others are refused like unknown keys and not advertised.
    pub served: bool,
    /// Only the active controller can answer it; other nodes hand it on.
    pub on_controller: bool,
    pub request: &'static [Field],
}

impl Api {
    pub const fn accepts(&self, version: i16) -> bool {
        self.version_min <= version && version <= self.version_max
    }

    pub const fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_from
    }

    /// Whether the response header ends in a tag section. ApiVersions never has one, so that any client can read the answer.
    pub const fn has_tagged_response_header(&self, version: i16) -> bool {
        self.is_flexible(version) && self.key != keys::API_VERSIONS
    }

    /// Holds a request body against the shape table; answers the bytes that the message takes of `body`.
    pub fn check(&self, version: i16, body: &[u8]) -> Result<usize, ShapeError> {
        if !self.accepts(version) {
            return Err(ShapeError { field: self.name, fault: ShapeFault::Version(version) });
        }
        check_body(self.request, version, self.is_flexible(version), body)
    }

    const fn flexible_from(mut self, version: i16) -> Api {
        self.flexible_from = version;
        self
    }

    const fn never_flexible(self) -> Api {
        self.flexible_from(i16::MAX)
    }

    const fn advertised_from(mut self, version: i16) -> Api {
        self.advertised_min = version;
        self
    }

    const fn also_controller(mut self) -> Api {
        self.listener = Listener::BrokerAndController;
        self
    }

    const fn needs(mut self, authorization: &'static [(ResourceKind, Operation)]) -> Api {
        self.authorization = authorization;
        self
    }

    const fn served(mut self) -> Api {
        self.served = true;
        self
    }

    const fn on_controller(mut self) -> Api {
        self.on_controller = true;
        self
    }

    /// Only for connections of nodes that have said who they are.
    pub const fn is_for_nodes(&self) -> bool {
        matches!(self.listener, Listener::Controller | Listener::Nodes)
    }

    const fn for_brokers(mut self) -> Api {
        self.listener = Listener::Controller;
        self.authorization = &[(Cluster, ClusterAction)];
        self.served()
    }
}

/// Flexible in all its versions, for the broker listener, open to everybody and not served, until said otherwise.
const fn api(key: i16, name: &'static str, version_min: i16, version_max: i16, request: &'static [Field]) -> Api {
    Api {
        key,
        name,
        version_min,
        version_max,
        advertised_min: version_min,
        flexible_from: version_min,
        listener: Listener::Broker,
        authorization: &[],
        served: false,
        on_controller: false,
        request,
    }
}

/// The API of a key, `None` for keys that nobody may use.
pub fn lookup(key: i16) -> Option<&'static Api> {
    if key > KEY_MAX {
        return private::lookup(key);
    }
    let index = (*INDEX.get(usize::try_from(key).ok()?)?)?;
    APIS.get(usize::from(index))
}

/// The APIs that this build answers to clients of brokers, in key order.
pub fn served() -> impl Iterator<Item = &'static Api> {
    APIS.iter().filter(|api| api.served && !api.is_for_nodes())
}

/// The APIs that this build answers to clients of a controller's listener, in key order. Kafka's list has Fetch, too, for its metadata
/// log; ours is not fetched.
pub fn served_by_controllers() -> impl Iterator<Item = &'static Api> {
    served().filter(|api| api.listener == Listener::BrokerAndController && api.key != keys::FETCH)
}

const KEYS_MAX: usize = 95;
const KEY_MAX: i16 = KEYS_MAX as i16 - 1;

/// Position in [`APIS`] by key.
static INDEX: [Option<u8>; KEYS_MAX] = {
    let mut index = [None; KEYS_MAX];
    let mut position = 0;
    while position < APIS.len() {
        index[APIS[position].key as usize] = Some(position as u8);
        position += 1;
    }
    index
};

/// API keys by name.
pub mod keys {
    pub const PRODUCE: i16 = 0;
    pub const FETCH: i16 = 1;
    pub const LIST_OFFSETS: i16 = 2;
    pub const METADATA: i16 = 3;
    pub const OFFSET_COMMIT: i16 = 8;
    pub const OFFSET_FETCH: i16 = 9;
    pub const FIND_COORDINATOR: i16 = 10;
    pub const JOIN_GROUP: i16 = 11;
    pub const HEARTBEAT: i16 = 12;
    pub const LEAVE_GROUP: i16 = 13;
    pub const SYNC_GROUP: i16 = 14;
    pub const DESCRIBE_GROUPS: i16 = 15;
    pub const LIST_GROUPS: i16 = 16;
    pub const SASL_HANDSHAKE: i16 = 17;
    pub const API_VERSIONS: i16 = 18;
    pub const CREATE_TOPICS: i16 = 19;
    pub const DELETE_TOPICS: i16 = 20;
    pub const DELETE_RECORDS: i16 = 21;
    pub const INIT_PRODUCER_ID: i16 = 22;
    pub const OFFSET_FOR_LEADER_EPOCH: i16 = 23;
    pub const ADD_PARTITIONS_TO_TXN: i16 = 24;
    pub const ADD_OFFSETS_TO_TXN: i16 = 25;
    pub const END_TXN: i16 = 26;
    pub const WRITE_TXN_MARKERS: i16 = 27;
    pub const TXN_OFFSET_COMMIT: i16 = 28;
    pub const DESCRIBE_ACLS: i16 = 29;
    pub const CREATE_ACLS: i16 = 30;
    pub const DELETE_ACLS: i16 = 31;
    pub const DESCRIBE_CONFIGS: i16 = 32;
    pub const ALTER_CONFIGS: i16 = 33;
    pub const ALTER_REPLICA_LOG_DIRS: i16 = 34;
    pub const DESCRIBE_LOG_DIRS: i16 = 35;
    pub const SASL_AUTHENTICATE: i16 = 36;
    pub const CREATE_PARTITIONS: i16 = 37;
    pub const CREATE_DELEGATION_TOKEN: i16 = 38;
    pub const RENEW_DELEGATION_TOKEN: i16 = 39;
    pub const EXPIRE_DELEGATION_TOKEN: i16 = 40;
    pub const DESCRIBE_DELEGATION_TOKEN: i16 = 41;
    pub const DELETE_GROUPS: i16 = 42;
    pub const ELECT_LEADERS: i16 = 43;
    pub const INCREMENTAL_ALTER_CONFIGS: i16 = 44;
    pub const ALTER_PARTITION_REASSIGNMENTS: i16 = 45;
    pub const LIST_PARTITION_REASSIGNMENTS: i16 = 46;
    pub const OFFSET_DELETE: i16 = 47;
    pub const DESCRIBE_CLIENT_QUOTAS: i16 = 48;
    pub const ALTER_CLIENT_QUOTAS: i16 = 49;
    pub const DESCRIBE_USER_SCRAM_CREDENTIALS: i16 = 50;
    pub const ALTER_USER_SCRAM_CREDENTIALS: i16 = 51;
    pub const DESCRIBE_QUORUM: i16 = 55;
    pub const ALTER_PARTITION: i16 = 56;
    pub const UPDATE_FEATURES: i16 = 57;
    pub const DESCRIBE_CLUSTER: i16 = 60;
    pub const DESCRIBE_PRODUCERS: i16 = 61;
    pub const BROKER_REGISTRATION: i16 = 62;
    pub const BROKER_HEARTBEAT: i16 = 63;
    pub const UNREGISTER_BROKER: i16 = 64;
    pub const DESCRIBE_TRANSACTIONS: i16 = 65;
    pub const LIST_TRANSACTIONS: i16 = 66;
    pub const ALLOCATE_PRODUCER_IDS: i16 = 67;
    pub const CONSUMER_GROUP_HEARTBEAT: i16 = 68;
    pub const CONSUMER_GROUP_DESCRIBE: i16 = 69;
    pub const GET_TELEMETRY_SUBSCRIPTIONS: i16 = 71;
    pub const PUSH_TELEMETRY: i16 = 72;
    pub const ASSIGN_REPLICAS_TO_DIRS: i16 = 73;
    pub const LIST_CONFIG_RESOURCES: i16 = 74;
    pub const DESCRIBE_TOPIC_PARTITIONS: i16 = 75;
    pub const SHARE_GROUP_HEARTBEAT: i16 = 76;
    pub const SHARE_GROUP_DESCRIBE: i16 = 77;
    pub const SHARE_FETCH: i16 = 78;
    pub const SHARE_ACKNOWLEDGE: i16 = 79;
    pub const ADD_RAFT_VOTER: i16 = 80;
    pub const REMOVE_RAFT_VOTER: i16 = 81;
    pub const INITIALIZE_SHARE_GROUP_STATE: i16 = 83;
    pub const READ_SHARE_GROUP_STATE: i16 = 84;
    pub const WRITE_SHARE_GROUP_STATE: i16 = 85;
    pub const DELETE_SHARE_GROUP_STATE: i16 = 86;
    pub const READ_SHARE_GROUP_STATE_SUMMARY: i16 = 87;
    pub const STREAMS_GROUP_HEARTBEAT: i16 = 88;
    pub const STREAMS_GROUP_DESCRIBE: i16 = 89;
    pub const DESCRIBE_SHARE_GROUP_OFFSETS: i16 = 90;
    pub const ALTER_SHARE_GROUP_OFFSETS: i16 = 91;
    pub const DELETE_SHARE_GROUP_OFFSETS: i16 = 92;
    pub const STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: i16 = 93;
    pub const UNREGISTER_CONTROLLER: i16 = 94;
}

pub static APIS: [Api; 84] = [
    api(0, "Produce", 3, 13, data::PRODUCE).flexible_from(9).advertised_from(0).needs(&[(Topic, Write)]).served(),
    api(1, "Fetch", 4, 18, data::FETCH).flexible_from(12).also_controller().needs(&[(Topic, Read)]).served(),
    api(2, "ListOffsets", 1, 11, data::LIST_OFFSETS).flexible_from(6).needs(&[(Topic, Describe)]).served(),
    api(3, "Metadata", 0, 13, topics::METADATA).flexible_from(9).needs(&[(Topic, Describe)]).served(),
    api(8, "OffsetCommit", 2, 10, groups::OFFSET_COMMIT)
        .flexible_from(8)
        .needs(&[(Group, Read), (Topic, Read)])
        .served(),
    api(9, "OffsetFetch", 1, 10, groups::OFFSET_FETCH)
        .flexible_from(6)
        .needs(&[(Group, Describe), (Topic, Describe)])
        .served(),
    api(10, "FindCoordinator", 0, 6, groups::FIND_COORDINATOR).flexible_from(3).needs(&[(Group, Describe)]).served(),
    api(11, "JoinGroup", 0, 9, groups::JOIN_GROUP).flexible_from(6).needs(&[(Group, Read)]).served(),
    api(12, "Heartbeat", 0, 4, groups::HEARTBEAT).flexible_from(4).needs(&[(Group, Read)]).served(),
    api(13, "LeaveGroup", 0, 5, groups::LEAVE_GROUP).flexible_from(4).needs(&[(Group, Read)]).served(),
    api(14, "SyncGroup", 0, 5, groups::SYNC_GROUP).flexible_from(4).needs(&[(Group, Read)]).served(),
    api(15, "DescribeGroups", 0, 6, groups::DESCRIBE_GROUPS).flexible_from(5).needs(&[(Group, Describe)]).served(),
    api(16, "ListGroups", 0, 5, groups::LIST_GROUPS)
        .flexible_from(3)
        .needs(&[(Cluster, Describe), (Group, Describe)])
        .served(),
    api(17, "SaslHandshake", 0, 1, security::SASL_HANDSHAKE).never_flexible().also_controller(),
    api(18, "ApiVersions", 0, 5, cluster::API_VERSIONS).flexible_from(3).also_controller().served(),
    api(19, "CreateTopics", 2, 7, topics::CREATE_TOPICS)
        .flexible_from(5)
        .also_controller()
        .needs(&[(Cluster, Create), (Topic, Create)])
        .served()
        .on_controller(),
    api(20, "DeleteTopics", 1, 6, topics::DELETE_TOPICS)
        .flexible_from(4)
        .also_controller()
        .needs(&[(Topic, Delete)])
        .served()
        .on_controller(),
    api(21, "DeleteRecords", 0, 2, data::DELETE_RECORDS).flexible_from(2).needs(&[(Topic, Delete)]).served(),
    api(22, "InitProducerId", 0, 5, data::INIT_PRODUCER_ID)
        .flexible_from(2)
        .needs(&[(Cluster, IdempotentWrite), (TransactionalId, Write)])
        .served(),
    api(23, "OffsetForLeaderEpoch", 2, 4, data::OFFSET_FOR_LEADER_EPOCH)
        .flexible_from(4)
        .needs(&[(Topic, Describe)])
        .served(),
    api(24, "AddPartitionsToTxn", 0, 5, transactions::ADD_PARTITIONS_TO_TXN)
        .flexible_from(3)
        .needs(&[(TransactionalId, Write), (Topic, Write)]),
    api(25, "AddOffsetsToTxn", 0, 4, transactions::ADD_OFFSETS_TO_TXN)
        .flexible_from(3)
        .needs(&[(TransactionalId, Write), (Group, Read)]),
    api(26, "EndTxn", 0, 5, transactions::END_TXN).flexible_from(3).needs(&[(TransactionalId, Write)]),
    api(27, "WriteTxnMarkers", 1, 2, transactions::WRITE_TXN_MARKERS).needs(&[(Cluster, ClusterAction)]),
    api(28, "TxnOffsetCommit", 0, 6, transactions::TXN_OFFSET_COMMIT).flexible_from(3).needs(&[
        (TransactionalId, Write),
        (Group, Read),
        (Topic, Read),
    ]),
    api(29, "DescribeAcls", 1, 3, security::DESCRIBE_ACLS)
        .flexible_from(2)
        .also_controller()
        .needs(&[(Cluster, Describe)])
        .served(),
    api(30, "CreateAcls", 1, 3, security::CREATE_ACLS)
        .flexible_from(2)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .on_controller(),
    api(31, "DeleteAcls", 1, 3, security::DELETE_ACLS)
        .flexible_from(2)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .on_controller(),
    api(32, "DescribeConfigs", 1, 4, configs::DESCRIBE_CONFIGS)
        .flexible_from(4)
        .also_controller()
        .needs(&[(Cluster, DescribeConfigs), (Topic, DescribeConfigs), (Group, DescribeConfigs)])
        .served(),
    api(33, "AlterConfigs", 0, 2, configs::ALTER_CONFIGS)
        .flexible_from(2)
        .also_controller()
        .needs(&[(Cluster, AlterConfigs), (Topic, AlterConfigs), (Group, AlterConfigs)])
        .served()
        .on_controller(),
    api(34, "AlterReplicaLogDirs", 1, 2, topics::ALTER_REPLICA_LOG_DIRS)
        .flexible_from(2)
        .needs(&[(Cluster, Alter)])
        .served(),
    api(35, "DescribeLogDirs", 1, 5, topics::DESCRIBE_LOG_DIRS).flexible_from(2).needs(&[(Cluster, Describe)]).served(),
    api(36, "SaslAuthenticate", 0, 2, security::SASL_AUTHENTICATE).flexible_from(2).also_controller(),
    api(37, "CreatePartitions", 0, 3, topics::CREATE_PARTITIONS)
        .flexible_from(2)
        .also_controller()
        .needs(&[(Topic, Alter)])
        .served()
        .on_controller(),
    api(38, "CreateDelegationToken", 1, 3, security::CREATE_DELEGATION_TOKEN)
        .flexible_from(2)
        .also_controller()
        .needs(&[(User, CreateTokens)]),
    api(39, "RenewDelegationToken", 1, 2, security::RENEW_DELEGATION_TOKEN).flexible_from(2).also_controller(),
    api(40, "ExpireDelegationToken", 1, 2, security::EXPIRE_DELEGATION_TOKEN).flexible_from(2).also_controller(),
    api(41, "DescribeDelegationToken", 1, 3, security::DESCRIBE_DELEGATION_TOKEN)
        .flexible_from(2)
        .also_controller()
        .needs(&[(DelegationToken, Describe), (User, DescribeTokens)]),
    api(42, "DeleteGroups", 0, 3, groups::DELETE_GROUPS).flexible_from(2).needs(&[(Group, Delete)]).served(),
    api(43, "ElectLeaders", 0, 2, topics::ELECT_LEADERS)
        .flexible_from(2)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
    api(44, "IncrementalAlterConfigs", 0, 1, configs::INCREMENTAL_ALTER_CONFIGS)
        .flexible_from(1)
        .also_controller()
        .needs(&[(Cluster, AlterConfigs), (Topic, AlterConfigs), (Group, AlterConfigs)])
        .served()
        .on_controller(),
    api(45, "AlterPartitionReassignments", 0, 1, topics::ALTER_PARTITION_REASSIGNMENTS)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
    api(46, "ListPartitionReassignments", 0, 0, topics::LIST_PARTITION_REASSIGNMENTS)
        .also_controller()
        .needs(&[(Cluster, Describe)])
        .served()
        .on_controller(),
    api(47, "OffsetDelete", 0, 0, groups::OFFSET_DELETE)
        .never_flexible()
        .needs(&[(Group, Delete), (Topic, Read)])
        .served(),
    api(48, "DescribeClientQuotas", 0, 1, configs::DESCRIBE_CLIENT_QUOTAS)
        .flexible_from(1)
        .needs(&[(Cluster, DescribeConfigs)]),
    api(49, "AlterClientQuotas", 0, 1, configs::ALTER_CLIENT_QUOTAS)
        .flexible_from(1)
        .also_controller()
        .needs(&[(Cluster, AlterConfigs)])
        .on_controller(),
    api(50, "DescribeUserScramCredentials", 0, 0, security::DESCRIBE_USER_SCRAM_CREDENTIALS)
        .also_controller()
        .needs(&[(Cluster, Describe)]),
    api(51, "AlterUserScramCredentials", 0, 0, security::ALTER_USER_SCRAM_CREDENTIALS)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .on_controller(),
    api(55, "DescribeQuorum", 0, 2, cluster::DESCRIBE_QUORUM)
        .also_controller()
        .needs(&[(Cluster, Describe)])
        .served()
        .on_controller(),
    api(56, "AlterPartition", 2, 3, nodes::ALTER_PARTITION).flexible_from(0).for_brokers(),
    api(57, "UpdateFeatures", 0, 2, cluster::UPDATE_FEATURES)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
    api(60, "DescribeCluster", 0, 2, cluster::DESCRIBE_CLUSTER)
        .also_controller()
        .needs(&[(Cluster, Describe)])
        .served(),
    api(61, "DescribeProducers", 0, 0, data::DESCRIBE_PRODUCERS).needs(&[(Topic, Read)]).served(),
    api(62, "BrokerRegistration", 0, 4, nodes::BROKER_REGISTRATION).for_brokers(),
    api(63, "BrokerHeartbeat", 0, 1, nodes::BROKER_HEARTBEAT).for_brokers(),
    api(64, "UnregisterBroker", 0, 0, cluster::UNREGISTER_BROKER)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
    api(65, "DescribeTransactions", 0, 0, transactions::DESCRIBE_TRANSACTIONS)
        .needs(&[(TransactionalId, Describe)])
        .served(),
    api(66, "ListTransactions", 0, 2, transactions::LIST_TRANSACTIONS).needs(&[(TransactionalId, Describe)]).served(),
    api(67, "AllocateProducerIds", 0, 0, nodes::ALLOCATE_PRODUCER_IDS).for_brokers(),
    api(68, "ConsumerGroupHeartbeat", 0, 1, groups::CONSUMER_GROUP_HEARTBEAT)
        .needs(&[(Group, Read), (Topic, Describe)]),
    api(69, "ConsumerGroupDescribe", 0, 1, groups::CONSUMER_GROUP_DESCRIBE)
        .needs(&[(Group, Describe), (Topic, Describe)])
        .served(),
    api(71, "GetTelemetrySubscriptions", 0, 0, configs::GET_TELEMETRY_SUBSCRIPTIONS),
    api(72, "PushTelemetry", 0, 0, configs::PUSH_TELEMETRY),
    api(73, "AssignReplicasToDirs", 0, 0, nodes::ASSIGN_REPLICAS_TO_DIRS).for_brokers(),
    api(74, "ListConfigResources", 0, 1, configs::LIST_CONFIG_RESOURCES).needs(&[(Cluster, DescribeConfigs)]).served(),
    api(75, "DescribeTopicPartitions", 0, 0, topics::DESCRIBE_TOPIC_PARTITIONS).needs(&[(Topic, Describe)]).served(),
    api(76, "ShareGroupHeartbeat", 1, 1, share::SHARE_GROUP_HEARTBEAT).needs(&[(Group, Read), (Topic, Describe)]),
    api(77, "ShareGroupDescribe", 1, 1, share::SHARE_GROUP_DESCRIBE).needs(&[(Group, Describe), (Topic, Describe)]),
    api(78, "ShareFetch", 1, 2, share::SHARE_FETCH).needs(&[(Group, Read), (Topic, Read)]),
    api(79, "ShareAcknowledge", 1, 2, share::SHARE_ACKNOWLEDGE).needs(&[(Group, Read), (Topic, Read)]),
    api(80, "AddRaftVoter", 0, 1, cluster::ADD_RAFT_VOTER)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
    api(81, "RemoveRaftVoter", 0, 0, cluster::REMOVE_RAFT_VOTER)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
    api(83, "InitializeShareGroupState", 0, 0, share::INITIALIZE_SHARE_GROUP_STATE).needs(&[(Cluster, ClusterAction)]),
    api(84, "ReadShareGroupState", 0, 0, share::READ_SHARE_GROUP_STATE).needs(&[(Cluster, ClusterAction)]),
    api(85, "WriteShareGroupState", 0, 1, share::WRITE_SHARE_GROUP_STATE).needs(&[(Cluster, ClusterAction)]),
    api(86, "DeleteShareGroupState", 0, 0, share::DELETE_SHARE_GROUP_STATE).needs(&[(Cluster, ClusterAction)]),
    api(87, "ReadShareGroupStateSummary", 0, 1, share::READ_SHARE_GROUP_STATE_SUMMARY)
        .needs(&[(Cluster, ClusterAction)]),
    api(88, "StreamsGroupHeartbeat", 0, 1, streams::STREAMS_GROUP_HEARTBEAT).needs(&[(Group, Read), (Topic, Describe)]),
    api(89, "StreamsGroupDescribe", 0, 1, streams::STREAMS_GROUP_DESCRIBE)
        .needs(&[(Group, Describe), (Topic, Describe)]),
    api(90, "DescribeShareGroupOffsets", 0, 1, share::DESCRIBE_SHARE_GROUP_OFFSETS)
        .needs(&[(Group, Describe), (Topic, Describe)]),
    api(91, "AlterShareGroupOffsets", 0, 0, share::ALTER_SHARE_GROUP_OFFSETS).needs(&[(Group, Read), (Topic, Read)]),
    api(92, "DeleteShareGroupOffsets", 0, 0, share::DELETE_SHARE_GROUP_OFFSETS)
        .needs(&[(Group, Delete), (Topic, Read)]),
    api(93, "StreamsGroupTopologyDescriptionUpdate", 0, 0, streams::STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE)
        .needs(&[(Group, Read)]),
    api(94, "UnregisterController", 0, 0, cluster::UNREGISTER_CONTROLLER)
        .also_controller()
        .needs(&[(Cluster, Alter)])
        .served()
        .on_controller(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_found() {
        assert!(APIS.is_sorted_by_key(|api| api.key));
        for api in &APIS {
            assert_eq!(lookup(api.key).map(|found| found.name), Some(api.name));
            assert!(api.version_min <= api.version_max, "{}", api.name);
        }
        for key in [-1, 4, 7, 52, 70, 82, 95, i16::MAX, i16::MIN] {
            assert!(lookup(key).is_none(), "{key}");
        }
    }

    #[test]
    fn produce_is_advertised_from_zero_and_accepted_from_three() {
        let produce = lookup(keys::PRODUCE).unwrap();
        assert_eq!((produce.advertised_min, produce.version_min, produce.version_max), (0, 3, 13));
        assert!(!produce.accepts(2));
    }
}
