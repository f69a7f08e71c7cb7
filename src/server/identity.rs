//! Who this node is: what `meta.properties` in its log directory says, or what it is given at its first start.

use std::path::Path;

use uuid::Uuid;

use crate::base::{BrokerId, TopicId};
use crate::host::Host;
use crate::log::LogError;
use crate::log::checkpoints::MetaProperties;

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(
        "{dir} belongs to node {found}, but node.id is {configured}: start the node that owns the directory, or give this one another"
    )]
    OtherNode { dir: String, found: BrokerId, configured: BrokerId },
    #[error(
        "{dir} belongs to cluster {found}, but cluster.id is {configured}: unset it, or use the directory of that cluster"
    )]
    OtherCluster { dir: String, found: String, configured: String },
    #[error(
        "meta.properties says cluster {found}, the metadata beside it says {metadata}: one of the two is from elsewhere"
    )]
    OtherMetadata { found: String, metadata: String },
    #[error(
        "{dir} belongs to cluster {found}, but {other} to cluster {expected}: take the one that is from elsewhere out of log.dirs"
    )]
    MixedClusters { dir: String, found: String, other: String, expected: String },
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A node's identity on one log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: String,
    pub directory_id: Uuid,
    /// The directory was used before.
    pub is_known: bool,
}

impl Identity {
    /// Reads the directory's identity and holds it against the settings; makes one up where there is none yet.
    pub fn find(
        host: &Host,
        dir: &Path,
        node_id: BrokerId,
        cluster_id: Option<&str>,
    ) -> Result<Identity, IdentityError> {
        let Some(found) = MetaProperties::read(&*host.disk, dir)? else {
            let fresh = || TopicId(host.entropy.uuid()).to_string();
            let cluster_id = cluster_id.map_or_else(fresh, str::to_owned);
            return Ok(Identity { cluster_id, directory_id: host.entropy.uuid(), is_known: false });
        };
        let named = || dir.display().to_string();
        if found.node_id != node_id {
            return Err(IdentityError::OtherNode { dir: named(), found: found.node_id, configured: node_id });
        }
        if let Some(configured) = cluster_id.filter(|configured| *configured != found.cluster_id) {
            let configured = configured.to_owned();
            return Err(IdentityError::OtherCluster { dir: named(), found: found.cluster_id, configured });
        }
        let directory_id = found.directory_id.as_deref().and_then(TopicId::parse_base64).map(|id| id.0);
        Ok(Identity {
            cluster_id: found.cluster_id,
            directory_id: directory_id.unwrap_or_else(|| host.entropy.uuid()),
            is_known: true,
        })
    }

    /// The identity under the cluster id that the metadata has. A directory that says otherwise is refused.
    pub fn agreeing_with(self, cluster_id: &str) -> Result<Identity, IdentityError> {
        if self.is_known && self.cluster_id != cluster_id {
            return Err(IdentityError::OtherMetadata { found: self.cluster_id, metadata: cluster_id.to_owned() });
        }
        Ok(Identity { cluster_id: cluster_id.to_owned(), ..self })
    }

    /// Writes the identity of a directory that had none.
    pub fn keep(&self, host: &Host, dir: &Path, node_id: BrokerId) -> Result<(), LogError> {
        let properties = MetaProperties {
            cluster_id: self.cluster_id.clone(),
            node_id,
            directory_id: Some(TopicId(self.directory_id).to_string()),
        };
        properties.write(&*host.disk, dir)
    }
}
