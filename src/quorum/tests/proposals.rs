use super::*;
use crate::metadata::NO_METADATA;

#[tokio::test]
async fn an_answer_means_applied_and_published() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    let mut watch = quorum.watch();
    assert_eq!(quorum.image().offset, NO_METADATA);
    assert_eq!(quorum.propose(vec![topic(1), topic(2)]).await, Ok(1));
    assert_eq!(names(&quorum.image()), ["topic-1", "topic-2"]);
    assert!(watch.has_changed().unwrap());
    assert_eq!(watch.borrow_and_update().offset, 1);
    assert_eq!(quorum.image().controller_id, 1);
}

#[tokio::test]
async fn an_empty_proposal_changes_nothing() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    assert_eq!(quorum.propose(vec![]).await, Ok(NO_METADATA));
    quorum.propose(vec![topic(1)]).await.unwrap();
    assert_eq!(quorum.propose(vec![]).await, Ok(0));
}

#[tokio::test]
async fn proposals_at_the_same_time_share_a_write() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    let before = machine.sim.disk.write_count();
    let offsets = futures_util::future::join_all((1..=200).map(|number| quorum.propose(vec![topic(number)]))).await;
    let calls = machine.sim.disk.write_count() - before;
    assert!(calls < 20, "{calls} calls for 200 proposals");
    let mut offsets: Vec<i64> = offsets.into_iter().map(Result::unwrap).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..200).collect::<Vec<_>>());
    assert_eq!(quorum.image().topic_count(), 200);
}

#[tokio::test]
async fn a_proposal_that_does_not_fit_fails_alone() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    let other_id =
        MetadataRecord::Topic { id: TopicId(Uuid::from_u128(9)), name: "topic-1".into(), partitions: vec![] };
    let (first, second, third) = tokio::join!(
        quorum.propose(vec![topic(1)]),
        quorum.propose(vec![topic(5), other_id]),
        quorum.propose(vec![topic(2)]),
    );
    assert_eq!((first, third), (Ok(0), Ok(1)));
    assert!(matches!(second, Err(QuorumError::Refused(_))));
    assert_eq!(names(&quorum.image()), ["topic-1", "topic-2"]);
}

#[tokio::test]
async fn a_dropped_caller_does_not_take_its_proposal_back() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    {
        let proposal = quorum.propose(vec![topic(1)]);
        tokio::pin!(proposal);
        // Polled once: the proposal is in the queue, its answer is not waited for.
        let waker = futures_util::task::noop_waker();
        let _ = std::future::Future::poll(proposal.as_mut(), &mut std::task::Context::from_waker(&waker));
    }
    assert_eq!(quorum.propose(vec![topic(2)]).await, Ok(1));
    assert_eq!(names(&quorum.image()), ["topic-1", "topic-2"]);
}

#[tokio::test]
async fn after_close_nothing_is_taken() {
    let machine = Machine::new(1);
    let quorum = machine.open().await.unwrap();
    quorum.propose(vec![topic(1)]).await.unwrap();
    quorum.close().await.unwrap();
    assert_eq!(quorum.propose(vec![topic(2)]).await, Err(QuorumError::Closed));
    assert_eq!(quorum.close().await, Ok(()));
}

#[tokio::test]
async fn the_leader_epoch_grows_with_every_start() {
    let machine = Machine::new(1);
    let mut epochs = Vec::new();
    for number in 1..=3 {
        let quorum = machine.open().await.unwrap();
        quorum.propose(vec![topic(number)]).await.unwrap();
        let description = quorum.describe();
        assert_eq!(description.leader_id, 1);
        assert_eq!(description.voters[0].log_end_offset, description.high_watermark);
        epochs.push(description.leader_epoch);
        quorum.close().await.unwrap();
    }
    assert_eq!(epochs, [1, 2, 3]);
}
