//! Partitions: in-sync sets, elections, reassignments, directories, and the ids that brokers give to producers.

use super::Controller;
use crate::base::{BrokerId, ErrorCode, PartitionIndex};
use crate::controller::decide::alter_partition::{AlterPartition, IsrOutcomes, alter_partition};
use crate::controller::decide::directories::{DirectoryAssignment, DirectoryOutcome, assign_directories};
use crate::controller::decide::elections::{Asked, ElectionOutcomes, elect_leaders};
use crate::controller::decide::producer_ids::{ProducerIdBlock, allocate_to};
use crate::controller::decide::reassignments::{self, Ongoing, Reassignment, ReassignmentOutcomes, reassign};
use crate::controller::decide::rules::Rules;
use crate::metadata::Image;
use crate::quorum::QuorumError;

impl Controller {
    /// Decides an AlterPartition request.
    pub async fn alter_partition(&self, asked: AlterPartition) -> Result<Result<IsrOutcomes, ErrorCode>, QuorumError> {
        Ok(self.arrange(move |image: &Image, rules: &Rules<'_>| alter_partition(image, rules, &asked)).await?.0)
    }

    /// Elects leaders; `None` means for every partition.
    pub async fn elect_leaders(
        &self,
        asked: Asked,
        partitions: Option<Vec<(String, Vec<PartitionIndex>)>>,
    ) -> Result<ElectionOutcomes, QuorumError> {
        self.must_be_active()?;
        let decide = move |image: &Image, rules: &Rules<'_>| elect_leaders(image, rules, asked, partitions.as_deref());
        Ok(self.arrange(decide).await?.0)
    }

    /// Starts, changes and takes back reassignments.
    pub async fn reassign(
        &self,
        topics: Vec<(String, Vec<Reassignment>)>,
        factor_may_change: bool,
    ) -> Result<ReassignmentOutcomes, QuorumError> {
        let decide = move |image: &Image, rules: &Rules<'_>| reassign(image, rules, &topics, factor_may_change);
        Ok(self.arrange(decide).await?.0)
    }

    /// What is being reassigned, by topic; `None` asks for all.
    pub fn list_reassignments(
        &self,
        topics: Option<&[(String, Vec<PartitionIndex>)]>,
    ) -> Result<Vec<(String, Vec<Ongoing>)>, QuorumError> {
        self.must_be_active()?;
        Ok(reassignments::list(&self.quorum().image(), topics))
    }

    /// A broker says in which directories its replicas lie.
    pub async fn assign_directories(
        &self,
        broker: BrokerId,
        epoch: i64,
        assignments: Vec<DirectoryAssignment>,
    ) -> Result<Result<Vec<DirectoryOutcome>, ErrorCode>, QuorumError> {
        let decide =
            move |image: &Image, rules: &Rules<'_>| assign_directories(image, rules, broker, epoch, &assignments);
        Ok(self.arrange(decide).await?.0)
    }

    /// For a broker that asks. `Ok(Ok(None))` when there are no more ids.
    pub async fn allocate_producer_ids_to(
        &self,
        broker: BrokerId,
        epoch: i64,
    ) -> Result<Result<Option<ProducerIdBlock>, ErrorCode>, QuorumError> {
        Ok(self.arrange(move |image: &Image, _: &Rules<'_>| allocate_to(image, broker, epoch)).await?.0)
    }
}
