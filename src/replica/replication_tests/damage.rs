//! Bytes change on the disks of the three nodes: what is damaged is found, leaves the in-sync set, and is fetched again; and nothing that
//! somebody else still needs is cut.

use std::collections::BTreeMap;

use super::super::damage::Key;
use super::*;
use crate::log::DamageWalk;
use crate::telemetry::Telemetry;

const RECORDS: usize = 60;

/// Where logs of batches of ten records end.
const BATCHED: Offset = 600;

/// Inside the first batch, inside one with others before it, and inside the first batch of a later segment.
const STARTS: [Offset; 3] = [5, 25, 185];

/// The controller, in small: what it decides is seen by the nodes when the scene tells them.
#[derive(Clone)]
struct Controller {
    state: Arc<Mutex<PartitionState>>,
    wires: Wires,
    /// Who gave its copy up, and where its log ended then.
    given_up: Arc<Mutex<Vec<(BrokerId, Offset)>>>,
    /// Who was told that there is no other, and whose leader was found damaged, too.
    refused: Arc<Mutex<Vec<BrokerId>>>,
    waiting: Arc<Mutex<Vec<BrokerId>>>,
    /// In-sync sets do not grow.
    frozen: Arc<Mutex<bool>>,
}

/// One node's way to it and to the others.
struct Care {
    me: BrokerId,
    controller: Controller,
}

impl Controller {
    fn end_of(&self, id: BrokerId) -> Offset {
        let partition = self.wires.of(id).and_then(|partitions| partitions.partition("t", 0));
        partition.and_then(|partition| partition.view_if_open()).map_or(0, |view| view.log_end_offset)
    }

    fn give_up(&self, me: BrokerId) -> Result<i32, ErrorCode> {
        let end = self.end_of(me);
        let mut state = self.state.lock();
        let mut others: Vec<BrokerId> = state.isr.iter().copied().filter(|id| *id != me).collect();
        if others.is_empty() {
            others.extend(state.elr.first());
        }
        let leader = if state.leader == me { others.first().copied() } else { Some(state.leader) };
        let Some(leader) = leader else {
            self.refused.lock().push(me);
            return Err(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE);
        };
        let moves = leader != state.leader;
        state.leader_epoch += i32::from(moves);
        state.leader = leader;
        state.elr.retain(|id| *id != me && !others.contains(id));
        state.isr = others;
        state.partition_epoch += 1;
        self.given_up.lock().push((me, end));
        Ok(state.partition_epoch)
    }
}

impl CopyCare for Care {
    fn give_up(&self, copies: Vec<GivenUp>) -> BoxFuture<'static, GiveUpAnswers> {
        let answers = copies.iter().map(|_| self.controller.give_up(self.me)).collect();
        Box::pin(std::future::ready(Ok(answers)))
    }

    fn look(
        &self,
        leader: BrokerId,
        _: Key,
        epoch: LeaderEpoch,
        from: Offset,
    ) -> BoxFuture<'static, Result<CopySeen, CareFailed>> {
        let (me, wires, waiting) = (self.me, self.controller.wires.clone(), self.controller.waiting.clone());
        let is_cut = wires.is_cut(leader) || wires.is_cut(self.me);
        Box::pin(async move {
            let partition = wires.of(leader).filter(|_| !is_cut).and_then(|partitions| partitions.partition("t", 0));
            let partition = partition.ok_or_else(|| CareFailed("nobody is there".to_owned()))?;
            // In small steps, so that several are needed.
            let seen = partition.look_at_copy(epoch, from, 1000).map_err(|error| CareFailed(error.to_string()))?;
            if seen.damaged_at.is_some() {
                waiting.lock().push(me);
            }
            Ok(seen)
        })
    }
}

impl IsrProposals for Care {
    fn propose(&self, proposals: Vec<IsrProposal>) -> BoxFuture<'static, IsrAnswers> {
        let mut state = self.controller.state.lock();
        let answers = proposals.iter().map(|one| {
            if *self.controller.frozen.lock() {
                return Err(ErrorCode::INELIGIBLE_REPLICA);
            }
            if one.proposal.partition_epoch != state.partition_epoch || state.leader != self.me {
                return Err(ErrorCode::INVALID_UPDATE_VERSION);
            }
            state.isr = one.proposal.isr.iter().map(|(id, _)| *id).collect();
            state.partition_epoch += 1;
            Ok(())
        });
        let answers = answers.collect();
        Box::pin(std::future::ready(Ok(answers)))
    }
}

struct Scene {
    cluster: Cluster,
    controller: Controller,
    telemetry: BTreeMap<BrokerId, Arc<Telemetry>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    written: Vec<(Offset, LeaderEpoch, String)>,
}

impl Scene {
    /// Every node has the same records in several segments, all of them on the device.
    async fn new() -> Scene {
        let cluster = Cluster::new();
        for round in 0..RECORDS {
            cluster.append(1, &format!("value {round} {}", "x".repeat(150))).unwrap();
        }
        Scene::of(cluster).await
    }

    /// Every node has the same batches of ten records in several segments, and their logs start at `start`.
    async fn that_starts_at(start: Offset) -> Scene {
        let cluster = Cluster::new();
        cluster.fill(1, BATCHED);
        cluster.until("it is committed", |cluster| cluster.node(1).partition().high_watermark() == BATCHED).await;
        cluster.delete_before(1, start);
        for id in NODES {
            cluster.until_span(id, (start, BATCHED)).await;
        }
        Scene::of(cluster).await
    }

    async fn of(cluster: Cluster) -> Scene {
        let end = cluster.node(1).end();
        cluster.until("all have it all", |cluster| cluster.nodes.iter().all(|node| node.end() == end)).await;
        let written = cluster.node(1).values();
        for node in &cluster.nodes {
            assert!(node.partition().view().unwrap().segments.len() > 2);
            node.partition().with_log(|log| log.flush().and_then(|_| log.checkpoint()).unwrap()).unwrap();
        }
        // A fetcher that still waits for a sync would wait for ever when a scene cuts the log behind everybody's back.
        let has_told = |node: &Node| node.id == 1 || node.partition().is_durable(end);
        cluster.until("all say so", |cluster| cluster.nodes.iter().all(has_told)).await;
        let state = Arc::new(Mutex::new(cluster.state.clone()));
        let controller = Controller {
            state,
            wires: cluster.wires.clone(),
            given_up: Arc::default(),
            refused: Arc::default(),
            waiting: Arc::default(),
            frozen: Arc::default(),
        };
        let mut scene = Scene { cluster, controller, telemetry: BTreeMap::new(), tasks: Vec::new(), written };
        NODES.iter().for_each(|id| scene.begin_caring(*id));
        scene
    }

    fn begin_caring(&mut self, id: BrokerId) {
        let node = self.cluster.node(id);
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let telemetry = Telemetry::new(0);
        let care = || Arc::new(Care { me: id, controller: self.controller.clone() });
        let (partitions, flusher) = (node.partitions.clone(), node.flusher.clone());
        let mut rebuilder = Rebuilder::new(partitions.clone(), flusher, clock.clone(), telemetry.clone(), care());
        rebuilder.retry_ms = 20;
        let driver = IsrDriver::new(partitions, clock, care());
        self.tasks.push(tokio::spawn(rebuilder.run()));
        self.tasks.push(tokio::spawn(driver.run()));
        self.telemetry.insert(id, telemetry);
    }

    fn set(&mut self, change: impl FnOnce(&mut PartitionState)) {
        let mut state = self.controller.state.lock();
        change(&mut state);
        state.partition_epoch += 1;
        self.cluster.state = state.clone();
        drop(state);
        self.cluster.tell_all();
    }

    /// From now on the sets are these, and nobody joins them.
    fn freeze(&mut self, isr: &[BrokerId], elr: &[BrokerId]) {
        *self.controller.frozen.lock() = true;
        self.set(|state| (state.isr, state.elr) = (isr.to_vec(), elr.to_vec()));
    }

    /// A byte of the batch that holds the offset.
    fn flip(&self, id: BrokerId, offset: Offset, byte: u64) {
        let view = self.cluster.node(id).partition().view().unwrap();
        let slice = view.read(offset, 1, view.log_end_offset, true).unwrap().unwrap();
        assert!(slice.first_offset <= offset && offset < slice.first_offset + 10);
        let bases = view.segments.iter().map(|segment| segment.base_offset());
        let base = bases.filter(|base| *base <= offset).max().unwrap();
        let path = format!("{LOG_DIR}/t-0/{base:020}.log");
        let at = (slice.position + byte) as usize;
        self.cluster.disk(id).corrupt(Path::new(&path), |bytes| bytes[at] ^= 0x10).unwrap();
    }

    async fn scrub(&self, id: BrokerId) {
        let node = self.cluster.node(id);
        let options = ScrubOptions { bytes_per_second: 1 << 30, interval_ms: 1 };
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let (partitions, telemetry) = (node.partitions.clone(), self.telemetry[&id].clone());
        Scrubber::new(partitions, clock, telemetry, options).walk_over_everything().await;
    }

    fn is_sound(&self, id: BrokerId) -> bool {
        let view = self.cluster.node(id).partition().view().unwrap();
        let mut walk = DamageWalk::new(self.cluster.node(id).partition().disk(), view, 0, Offset::MAX);
        let looked = walk.step(u64::MAX).unwrap();
        looked.done && looked.damage.is_empty()
    }

    /// The nodes learn what the controller has decided, until it holds.
    async fn until(&mut self, what: &str, holds: impl Fn(&Scene) -> bool) {
        let deadline = RealClock::new();
        let limit = deadline.monotonic_ms() + u64::try_from(PATIENCE.as_millis()).unwrap();
        while !holds(self) {
            assert!(deadline.monotonic_ms() < limit, "never happened: {what}; {}", self.shown());
            let state = self.controller.state.lock().clone();
            if state != self.cluster.state {
                self.cluster.state = state;
                self.cluster.tell_all();
            }
            task::sleep(Duration::from_millis(1)).await;
        }
    }

    fn shown(&self) -> String {
        let shown =
            |node: &Node| (node.id, node.partition().role(), self.cluster.span(node.id), node.partition().damage());
        format!("{:?}, {:?}", self.controller.state.lock(), self.cluster.nodes.iter().map(shown).collect::<Vec<_>>())
    }

    async fn until_whole(&mut self) {
        let end = self.written.last().unwrap().0 + 1;
        self.until("every copy is whole and in sync", |scene| {
            let state = scene.controller.state.lock().clone();
            state.isr.len() == NODES.len()
                && NODES.iter().all(|id| scene.cluster.node(*id).end() >= end && scene.is_sound(*id))
        })
        .await;
        for id in NODES {
            let values = self.cluster.node(id).values();
            assert_eq!(values[..self.written.len()], self.written[..], "node {id}");
        }
    }

    fn shows(&self, id: BrokerId, line: &str) -> bool {
        self.telemetry[&id].render().lines().any(|have| have == line)
    }

    async fn stop(self) {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
        self.cluster.stop().await;
    }
}

#[tokio::test]
async fn a_damaged_follower_leaves_the_set_and_is_fetched_again_from_the_damage() {
    for byte in [3, 6, 9, 12, 15, 20, 70] {
        let mut scene = Scene::new().await;
        scene.flip(2, 17, byte);
        scene.scrub(2).await;
        assert!(scene.shows(2, "barnabas_damaged_batches_total 1"));
        scene.until_whole().await;
        let given_up = scene.controller.given_up.lock().clone();
        assert_eq!(given_up, [(2, RECORDS as i64)], "it left before anything was cut");
        assert_eq!(scene.controller.state.lock().leader, 1);
        scene.until("that is over", |scene| scene.shows(2, "barnabas_damaged_copies 0")).await;
        assert_eq!(scene.cluster.produce(1, "after", PATIENCE).await, Ok(()));
        scene.stop().await;
    }
}

#[tokio::test]
async fn a_damaged_leader_hands_over_and_is_fetched_again() {
    let mut scene = Scene::new().await;
    scene.flip(1, 17, 70);
    scene.scrub(1).await;
    scene.until_whole().await;
    let state = scene.controller.state.lock().clone();
    assert_eq!((state.leader, state.leader_epoch), (2, 1));
    assert_eq!(scene.controller.given_up.lock()[0], (1, RECORDS as i64));
    assert_eq!(scene.cluster.produce(2, "after", PATIENCE).await, Ok(()));
    scene.stop().await;
}

#[tokio::test]
async fn a_leader_whose_follower_cannot_use_what_it_sends_finds_out_why() {
    // The epoch of byte 15 is one that the leader might have written.
    for byte in [70, 12, 15, 6] {
        a_leader_finds_out_why(17, byte).await;
    }
    // What a consumer would read behind a gap.
    a_leader_finds_out_why(RECORDS as Offset - 1, 6).await;
}

/// Node 3 comes back without most of its copy, and in the leader's a bit of the batch with `damaged` has flipped.
async fn a_leader_finds_out_why(damaged: Offset, byte: u64) {
    a_leader_finds_out(Scene::new().await, damaged, byte).await;
}

#[tokio::test]
async fn a_batch_that_was_taken_with_an_epoch_that_came_later_is_fetched_again() {
    let mut scene = Scene::new().await;
    // With records in the epoch that the flipped bit will make of 0.
    scene.set(|state| state.leader_epoch += 16);
    scene.cluster.until("it leads", |cluster| cluster.node(1).partition().leader_epoch() == 16).await;
    assert_eq!(scene.cluster.produce(1, "later", PATIENCE).await, Ok(()));
    a_leader_finds_out(scene, 17, 15).await;
}

async fn a_leader_finds_out(mut scene: Scene, damaged: Offset, byte: u64) {
    *scene.controller.frozen.lock() = true;
    scene.cluster.wires.cut.lock().push(3);
    let flusher = scene.cluster.node(3).flusher.clone();
    let partition = scene.cluster.node(3).partition();
    let cut = task::blocking(move || {
        assert!(flusher.empty_journal(partition.log_dir()));
        partition.with_log(|log| log.truncate_to(10).unwrap()).unwrap();
    });
    cut.await;
    // With another epoch everybody looks anew where its log ends.
    scene.set(|state| {
        state.isr = vec![1, 2];
        state.leader_epoch += 20;
    });
    scene.flip(1, damaged, byte);
    scene.cluster.wires.cut.lock().clear();
    *scene.controller.frozen.lock() = false;
    scene.until_whole().await;
    assert_eq!(scene.controller.state.lock().leader, 2, "nobody had scrubbed");
    scene.stop().await;
}

#[tokio::test]
async fn two_of_three_copies_that_are_damaged_at_different_places_become_whole() {
    for (first, second) in [(40, 5), (5, 40)] {
        let mut scene = Scene::new().await;
        scene.flip(1, first, 70);
        scene.flip(2, second, 70);
        scene.scrub(1).await;
        scene.scrub(2).await;
        scene.until_whole().await;
        assert_eq!(scene.controller.state.lock().leader, 3);
        scene.stop().await;
    }
}

#[tokio::test]
async fn the_last_copy_in_sync_goes_on_leading_and_nothing_is_cut() {
    let mut scene = Scene::new().await;
    scene.freeze(&[1], &[]);
    scene.flip(1, 17, 70);
    scene.scrub(1).await;
    scene.until("it says so", |scene| scene.shows(1, "barnabas_damaged_copies 1")).await;
    scene.until("it has asked for another leader in vain", |scene| scene.controller.refused.lock().len() > 2).await;
    let node = scene.cluster.node(1);
    assert_eq!((node.end(), node.partition().is_leader()), (RECORDS as i64, true));
    assert_eq!(scene.controller.given_up.lock().len(), 0);
    scene.stop().await;
}

/// Node 2 lacks record 5, and the only other copy that is there lacks record 40.
#[tokio::test]
async fn a_follower_keeps_what_it_has_while_its_leader_is_damaged_too() {
    let mut scene = Scene::new().await;
    scene.freeze(&[1, 2], &[]);
    scene.cluster.wires.cut.lock().push(3);
    scene.flip(1, 40, 70);
    scene.flip(2, 5, 70);
    scene.scrub(2).await;
    scene.until("the leader knows", |scene| scene.cluster.node(1).partition().is_damaged()).await;
    scene.until("it has asked its leader again and again", |scene| scene.controller.waiting.lock().len() > 2).await;
    assert_eq!((scene.cluster.node(1).end(), scene.cluster.node(2).end()), (RECORDS as i64, RECORDS as i64));
    assert_eq!(scene.controller.state.lock().leader, 1);
    // The third one is back: it has it all.
    scene.cluster.wires.cut.lock().clear();
    *scene.controller.frozen.lock() = false;
    scene.until_whole().await;
    scene.stop().await;
}

/// As the registration after an unclean stop does: the node is out of the set until it has caught up.
#[tokio::test]
async fn a_tail_that_was_damaged_when_the_power_went_is_fetched_again() {
    let mut scene = Scene::new().await;
    for round in 0..10 {
        assert_eq!(scene.cluster.produce(1, &format!("tail {round}"), PATIENCE).await, Ok(()));
    }
    scene.written = scene.cluster.node(1).values();
    let end = scene.cluster.node(2).end();
    assert_eq!(end, RECORDS as i64 + 10);
    let flusher = scene.cluster.node(2).flusher.clone();
    let partition = scene.cluster.node(2).partition();
    assert!(task::blocking(move || flusher.empty_journal(partition.log_dir())).await);
    scene.flip(2, end - 4, 70);
    scene.cluster.power_cut(2).await;
    scene.set(|state| state.isr = vec![1, 3]);
    assert_eq!(scene.cluster.produce(1, "after", PATIENCE).await, Ok(()));
    scene.until("it has caught up", |scene| scene.cluster.node(2).end() == end + 1).await;
    assert_eq!(scene.cluster.node(2).values()[..scene.written.len()], scene.written[..]);
    assert_eq!(scene.cluster.node(1).values(), scene.cluster.node(2).values(), "and nobody else was cut");
    scene.stop().await;
}

/// Node 1 stops cleanly, and its last batches are not there any more when it comes back.
async fn come_back_without_the_end(scene: &mut Scene) {
    come_back_with(scene, RECORDS as i64 - 2, 16).await;
}

/// Node 1 stops cleanly, and comes back with another bit in that byte of the batch with `offset`.
async fn come_back_with(scene: &mut Scene, offset: Offset, byte: u64) {
    // Else the start writes the sound bytes again.
    let (flusher, partition) = (scene.cluster.node(1).flusher.clone(), scene.cluster.node(1).partition());
    assert!(task::blocking(move || flusher.empty_journal(partition.log_dir())).await);
    scene.flip(1, offset, byte);
    let closed = scene.cluster.node(1).partitions.clone();
    task::blocking(move || closed.close(1).unwrap()).await;
    scene.cluster.crash(1, Crash::Process).await;
    scene.begin_caring(1);
    scene.set(|_| {});
    // Whoever opens it first finds out; that may have been somebody who fetches.
    let _ = scene.cluster.node(1).partition().view();
}

/// Nobody but this node is in sync when it comes back from a clean stop, and its last batches are not there any more.
#[tokio::test]
async fn a_log_that_lost_its_end_does_not_lead_while_another_has_it() {
    let mut scene = Scene::new().await;
    scene.freeze(&[1], &[2]);
    come_back_without_the_end(&mut scene).await;
    assert!(!scene.cluster.node(1).partition().is_leader());
    scene.until("another one leads", |scene| scene.cluster.node(2).partition().is_leader()).await;
    *scene.controller.frozen.lock() = false;
    scene.until_whole().await;
    scene.stop().await;
}

/// The base offset and the count of its last batch are further on than they were, or its epoch is: nobody reads records that are not
/// there, and none is lost anywhere.
#[tokio::test]
async fn a_last_batch_that_claims_to_be_another_one_after_a_clean_stop_is_fetched_again() {
    for byte in [4, 6, 12, 14, 15, 24, 25] {
        let mut scene = Scene::new().await;
        come_back_with(&mut scene, RECORDS as Offset - 1, byte).await;
        scene.scrub(1).await;
        scene.until_whole().await;
        let leader = scene.controller.state.lock().leader;
        assert_eq!(scene.cluster.produce(leader, "after", PATIENCE).await, Ok(()));
        scene.stop().await;
    }
}

#[tokio::test]
async fn a_log_that_lost_its_end_leads_when_there_is_no_other() {
    let mut scene = Scene::new().await;
    scene.freeze(&[1], &[]);
    come_back_without_the_end(&mut scene).await;
    scene.until("it leads", |scene| scene.cluster.node(1).partition().is_leader()).await;
    assert_eq!(scene.cluster.node(1).end(), RECORDS as i64 - 2);
    scene.stop().await;
}

#[tokio::test]
async fn a_single_copy_is_reported_and_left_as_it_is() {
    let mut scene = Scene::new().await;
    scene.set(|state| (state.replicas, state.isr) = (vec![1], vec![1]));
    scene.flip(1, 17, 70);
    scene.flip(1, 30, 70);
    scene.scrub(1).await;
    assert!(scene.shows(1, "barnabas_damaged_batches_total 2"));
    scene.until("it says so", |scene| scene.shows(1, "barnabas_damaged_copies 1")).await;
    assert_eq!(scene.cluster.node(1).end(), RECORDS as i64);
    assert_eq!(scene.cluster.produce(1, "after", PATIENCE).await, Ok(()));
    scene.stop().await;
}

#[tokio::test]
async fn damage_in_the_batch_that_the_log_starts_in_is_found_and_fetched_again() {
    for start in STARTS {
        for byte in [3, 7, 9, 70] {
            let mut scene = Scene::that_starts_at(start).await;
            scene.flip(2, start, byte);
            scene.scrub(2).await;
            assert!(scene.shows(2, "barnabas_damaged_batches_total 1"), "byte {byte} of the batch with {start}");
            scene.until_whole().await;
            let given_up = scene.controller.given_up.lock().clone();
            assert_eq!(given_up, [(2, BATCHED)], "it left before anything was cut");
            scene.until("that is over", |scene| scene.shows(2, "barnabas_damaged_copies 0")).await;
            assert_eq!(scene.cluster.span(2), (start, BATCHED), "nothing that was deleted is back");
            assert_eq!(scene.cluster.produce(1, "after", PATIENCE).await, Ok(()));
            scene.stop().await;
        }
    }
}

#[tokio::test]
async fn a_leader_whose_log_starts_in_a_damaged_batch_hands_over_and_is_fetched_again() {
    for start in STARTS {
        let mut scene = Scene::that_starts_at(start).await;
        scene.flip(1, start, 70);
        scene.scrub(1).await;
        scene.until_whole().await;
        let state = scene.controller.state.lock().clone();
        assert_eq!((state.leader, state.leader_epoch), (2, 1));
        assert_eq!(scene.cluster.span(1), (start, BATCHED));
        scene.stop().await;
    }
}

/// The batch that both logs start in is damaged on the leader and on node 2.
#[tokio::test]
async fn a_batch_that_the_leader_lost_too_is_not_cut_although_the_log_starts_in_it() {
    for is_scrubbed in [false, true] {
        let mut scene = Scene::that_starts_at(25).await;
        scene.freeze(&[1, 2], &[]);
        scene.cluster.wires.cut.lock().push(3);
        scene.flip(1, 25, 70);
        scene.flip(2, 25, 80);
        if is_scrubbed {
            // It stays the leader, because nobody else is asked.
            scene.freeze(&[1], &[]);
            scene.scrub(1).await;
        }
        scene.scrub(2).await;
        scene.until("it has asked its leader again and again", |scene| scene.controller.waiting.lock().len() > 2).await;
        assert_eq!((scene.cluster.span(1), scene.cluster.span(2)), ((25, BATCHED), (25, BATCHED)));
        scene.stop().await;
    }
}

/// What the damaged copy asks for has been deleted meanwhile.
#[tokio::test]
async fn a_damaged_copy_learns_that_the_leaders_log_starts_behind_the_damage() {
    for (damaged, start) in [(15, 15), (15, 18), (45, 45), (45, 48), (45, 50), (45, 75)] {
        let mut scene = Scene::that_starts_at(15).await;
        *scene.controller.frozen.lock() = true;
        scene.cluster.wires.cut.lock().push(2);
        scene.flip(2, damaged, 70);
        scene.scrub(2).await;
        scene.cluster.delete_before(1, start);
        scene.cluster.until_span(3, (start, BATCHED)).await;
        scene.written = scene.cluster.node(1).values();
        scene.cluster.wires.cut.lock().clear();
        *scene.controller.frozen.lock() = false;
        scene.until_whole().await;
        scene.until("that is over", |scene| scene.shows(2, "barnabas_damaged_copies 0")).await;
        assert_eq!(scene.cluster.span(2), (start, BATCHED), "damaged at {damaged}");
        scene.stop().await;
    }
}

#[tokio::test]
async fn damage_of_the_last_copy_that_is_deleted_is_over() {
    let mut scene = Scene::that_starts_at(15).await;
    scene.freeze(&[1], &[]);
    scene.flip(1, 15, 70);
    scene.scrub(1).await;
    scene.until("it says so", |scene| scene.shows(1, "barnabas_damaged_copies 1")).await;
    scene.cluster.delete_before(1, 19);
    let asked = scene.controller.refused.lock().len();
    scene.until("it asks on", |scene| scene.controller.refused.lock().len() > asked + 2).await;
    assert!(scene.shows(1, "barnabas_damaged_copies 1"), "one record is left of the batch");
    scene.cluster.delete_before(1, 20);
    scene.until("that is over", |scene| scene.shows(1, "barnabas_damaged_copies 0")).await;
    assert!(scene.cluster.node(1).partition().is_leader());
    scene.stop().await;
}
