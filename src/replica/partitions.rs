//! All partitions of this node, found by name or id, kept in step with the metadata image.

mod keeping;
mod starts;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use uuid::Uuid;

use self::keeping::Doomed;
use crate::base::{LeaderEpoch, MonotonicMs, PartitionIndex, TopicId, TopicPartition};
use crate::host::Disk;
use crate::log::{LogEnv, LogIdentity, read_topic_id, retired_dir_name};
use crate::metadata::config::LogConfig;
use crate::metadata::{Image, NO_METADATA, Topic};
use crate::records::AppendRules;
use crate::replica::append_rules::append_rules;
use crate::replica::leader::Rules;
use crate::replica::log_dirs::{LogDir, LogDirs};
use crate::replica::partition::{Checkpointed, Partition, Slot};
use crate::replica::role::{Common, ReplicaOptions};
use crate::replica::stock::{Place, Stock};
use crate::replica::throttle::{FOLLOWER_RATE, LEADER_RATE, MOVING_RATE};
use crate::telemetry::{Telemetry, TopicMetrics};

/// One topic as this node holds it.
pub struct TopicReplicas {
    pub name: Arc<str>,
    pub id: TopicId,
    pub config: Arc<LogConfig>,
    /// What a client's batch must obey here; follows from the config.
    pub append_rules: AppendRules,
    pub metrics: Arc<TopicMetrics>,
    /// By partition index; `None` where this node holds no replica.
    pub partitions: Vec<Option<Arc<Partition>>>,
    /// The image's picture that this was made from: the same pointer means nothing changed.
    source: Arc<Topic>,
}

impl TopicReplicas {
    pub fn partition(&self, index: PartitionIndex) -> Option<&Arc<Partition>> {
        usize::try_from(index).ok().and_then(|index| self.partitions.get(index)).and_then(Option::as_ref)
    }

    /// Whether the topic has this partition at all, here or only on other nodes.
    pub fn has(&self, index: PartitionIndex) -> bool {
        usize::try_from(index).is_ok_and(|index| index < self.partitions.len())
    }
}

#[derive(Default)]
struct Table {
    by_name: HashMap<Arc<str>, Arc<TopicReplicas>>,
    by_id: HashMap<TopicId, Arc<TopicReplicas>>,
}

/// How topics get their effective configuration: overrides of the image over this node's own settings.
pub type ConfigSource = Box<dyn Fn(&Image, &str) -> LogConfig + Send + Sync>;

pub struct Partitions {
    env: LogEnv,
    dirs: Arc<LogDirs>,
    common: Arc<Common>,
    config_source: ConfigSource,
    telemetry: Arc<Telemetry>,
    table: ArcSwap<Table>,
    /// Serialises [`Partitions::apply`].
    applying: Mutex<()>,
    /// Serialises [`Partitions::move_replica`].
    ordering: Mutex<()>,
    applied: watch::Sender<i64>,
    /// What was found in the directories and has not been met in the metadata. Taken with the first image.
    stock: Mutex<Option<Stock>>,
    /// Held from the look at the logs until the checkpoint files say what was seen: an older look never comes after a newer one.
    saving: Mutex<()>,
    starts_moved: AtomicBool,
    /// Directories of deleted topics that wait for their removal.
    doomed: Mutex<Vec<Doomed>>,
}

impl Partitions {
    pub fn new(
        env: LogEnv,
        dirs: LogDirs,
        options: ReplicaOptions,
        config_source: ConfigSource,
        telemetry: Arc<Telemetry>,
    ) -> Partitions {
        Partitions {
            env,
            dirs: Arc::new(dirs),
            common: Arc::new(Common::new(options)),
            config_source,
            telemetry,
            table: ArcSwap::from_pointee(Table::default()),
            applying: Mutex::new(()),
            ordering: Mutex::new(()),
            applied: watch::Sender::new(NO_METADATA),
            stock: Mutex::new(None),
            saving: Mutex::new(()),
            starts_moved: AtomicBool::new(false),
            doomed: Mutex::new(Vec::new()),
        }
    }

    pub fn topic(&self, name: &str) -> Option<Arc<TopicReplicas>> {
        self.table.load().by_name.get(name).cloned()
    }

    pub fn topic_by_id(&self, id: TopicId) -> Option<Arc<TopicReplicas>> {
        self.table.load().by_id.get(&id).cloned()
    }

    pub fn partition(&self, topic: &str, index: PartitionIndex) -> Option<Arc<Partition>> {
        self.table.load().by_name.get(topic).and_then(|topic| topic.partition(index).cloned())
    }

    /// What all partitions share; for the drivers.
    pub(super) fn common(&self) -> &Arc<Common> {
        &self.common
    }

    pub(super) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Which protections hold: all, but for tests.
    pub fn rules(&self) -> Rules {
        self.common.options.rules
    }

    /// The metadata that has taken effect here.
    pub fn image(&self) -> Arc<Image> {
        self.common.image.load_full()
    }

    /// The controller has fenced this node or has not heard of it for a session: nothing is acknowledged to `acks=all` until that is
    /// over (F6).
    pub fn set_fenced(&self, fenced: bool) {
        if self.common.set_fenced(fenced) == fenced || !fenced {
            return;
        }
        for topic in self.topics() {
            topic.partitions.iter().flatten().for_each(|partition| partition.note_fenced());
        }
    }

    /// Until when, by the monotonic clock, no controller can hold this node for dead.
    pub fn set_session_end(&self, at: MonotonicMs) {
        self.common.set_session_end(at);
    }

    /// Whether another node may have been given what this one led.
    pub fn may_have_successors(&self) -> bool {
        self.common.may_have_successors(self.env.host.clock.monotonic_ms())
    }

    /// This node has registered: its fetches and proposals carry this epoch from now on.
    pub fn set_broker_epoch(&self, epoch: i64) {
        self.common.set_broker_epoch(epoch);
    }

    /// The partitions of a topic that this node leads, with their leader epochs.
    pub fn led(&self, topic: &str) -> Vec<(PartitionIndex, LeaderEpoch)> {
        let Some(topic) = self.topic(topic) else { return Vec::new() };
        let led = topic.partitions.iter().flatten().filter(|partition| partition.is_leader());
        led.map(|partition| (partition.identity.topic_partition.partition, partition.leader_epoch())).collect()
    }

    /// All topics, in no order.
    pub fn topics(&self) -> Vec<Arc<TopicReplicas>> {
        self.table.load().by_name.values().cloned().collect()
    }

    /// Why no log directory is served any more.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.dirs.all_failed()
    }

    pub fn dirs(&self) -> &Arc<LogDirs> {
        &self.dirs
    }

    /// Held while somebody orders a move.
    pub(super) fn ordering(&self) -> MutexGuard<'_, ()> {
        self.ordering.lock()
    }

    pub(super) fn env(&self) -> &LogEnv {
        &self.env
    }

    pub fn disk(&self) -> &dyn Disk {
        &*self.env.host.disk
    }

    /// The metadata offset that has taken effect here.
    pub fn applied(&self) -> watch::Receiver<i64> {
        self.applied.subscribe()
    }

    /// Everything that acts on the image with this offset has done so.
    pub fn note_applied(&self, offset: i64) {
        self.applied.send_replace(offset);
    }

    /// Takes over a newer image: new topics get partitions, changed configs take effect, deleted topics go away.
    pub fn apply(&self, image: &Image, configs_changed: bool) {
        let _turn = self.applying.lock();
        self.common.image.store(Arc::new(image.clone()));
        if configs_changed {
            let me = self.common.options.node_id;
            self.common.leader_throttle.follow(image, me, LEADER_RATE);
            self.common.follower_throttle.follow(image, me, FOLLOWER_RATE);
            self.common.moving_throttle.follow(image, me, MOVING_RATE);
        }
        let before = self.table.load_full();
        self.retire_gone(&before, image);
        let mut table = Table::default();
        for source in image.topics() {
            let replicas = match before.by_id.get(&source.id) {
                Some(known) if Arc::ptr_eq(&known.source, source) && !configs_changed => known.clone(),
                known => Arc::new(self.replicas(image, source, known, configs_changed)),
            };
            table.by_name.insert(replicas.name.clone(), replicas.clone());
            table.by_id.insert(replicas.id, replicas);
        }
        self.table.store(Arc::new(table));
    }

    /// Has a partition take its role from the metadata again, because something else than the metadata has changed.
    pub(super) fn apply_again(&self, partition: &Arc<Partition>) {
        let _turn = self.applying.lock();
        let image = self.common.image.load();
        let LogIdentity { topic_partition, topic_id } = &partition.identity;
        let topic = image.topic_by_id(*topic_id);
        if let Some(state) = topic.and_then(|topic| topic.partition(topic_partition.partition))
            && !partition.is_retired()
        {
            partition.apply(state);
        }
    }

    /// Ends the partitions of deleted topics, and those that this node has no replica of any more. Before anything is made that could use
    /// a name again: its directory and what is remembered of it are not the old one's.
    fn retire_gone(&self, before: &Table, image: &Image) {
        let me = self.common.options.node_id;
        let mut gone = Vec::new();
        for topic in before.by_id.values() {
            let now = image.topic_by_id(topic.id);
            if now.is_some_and(|now| Arc::ptr_eq(now, &topic.source)) {
                continue;
            }
            for (index, partition) in topic.partitions.iter().enumerate() {
                let state = now.and_then(|now| now.partitions.get(index));
                let stays = state.is_some_and(|state| state.replicas.contains(&me));
                gone.extend(partition.as_ref().filter(|_| !stays).cloned());
            }
        }
        gone.iter().for_each(|partition| self.retire(partition));
        self.forget(&gone, before);
    }

    fn replicas(
        &self,
        image: &Image,
        source: &Arc<Topic>,
        known: Option<&Arc<TopicReplicas>>,
        configs_changed: bool,
    ) -> TopicReplicas {
        let config = Arc::new((self.config_source)(image, &source.name));
        let mut partitions = Vec::with_capacity(source.partitions.len());
        for (index, state) in source.partitions.iter().enumerate() {
            let before = known.and_then(|known| known.partitions.get(index)).and_then(Option::as_ref);
            if !state.replicas.contains(&self.common.options.node_id) {
                partitions.push(None);
                continue;
            }
            let partition = match before {
                Some(partition) => {
                    partition.set_config(config.clone());
                    partition.clone()
                }
                None => {
                    let index = PartitionIndex::try_from(index).unwrap_or(PartitionIndex::MAX);
                    self.new_partition(source, index, state.directory_of(self.common.options.node_id), &config)
                }
            };
            let unchanged = before.is_some()
                && !configs_changed
                && known
                    .is_some_and(|known| known.source.partitions.get(index).is_some_and(|old| Arc::ptr_eq(old, state)));
            if !unchanged {
                partition.apply(state);
                if partition.claim(state).is_some() {
                    self.common.misplaced.add(&partition);
                }
            }
            partitions.push(Some(partition));
        }
        TopicReplicas {
            name: source.name.clone(),
            id: source.id,
            append_rules: append_rules(&config),
            metrics: self.telemetry.topic(&source.name),
            config,
            partitions,
            source: source.clone(),
        }
    }

    fn new_partition(
        &self,
        topic: &Topic,
        index: PartitionIndex,
        assigned: Option<Uuid>,
        config: &Arc<LogConfig>,
    ) -> Arc<Partition> {
        let topic_partition = TopicPartition::new(topic.name.clone(), index);
        let place = {
            let mut stock = self.stock.lock();
            let stock = stock.get_or_insert_with(|| Stock::take(self.disk(), &self.dirs));
            stock.place(&self.env.host, &self.dirs, &topic_partition, topic.id, assigned)
        };
        let identity = LogIdentity { topic_partition, topic_id: topic.id };
        let make = |dir: usize, slot| {
            let (env, common, home) = (self.env.clone(), self.common.clone(), (self.dirs.clone(), dir));
            Arc::new(Partition::new(env, common, home, identity.clone(), config.clone(), slot))
        };
        match place {
            Place::In { dir, future } => {
                let log_dir = self.dirs.at(dir);
                let checkpointed = self.checkpointed(log_dir, &identity);
                let partition = make(dir, Slot::Unopened(checkpointed));
                log_dir.gained_replica();
                if let Some((to, path)) = future {
                    let checkpointed = self.dirs.at(to).take_checkpointed(&identity.topic_partition);
                    self.resume_move(&partition, to, path, checkpointed.unwrap_or_default(), assigned);
                }
                partition
            }
            Place::Missing(reason) => make(0, Slot::Missing(reason)),
        }
    }

    /// What was remembered of a partition, as far as it can have been said of this one.
    fn checkpointed(&self, log_dir: &LogDir, identity: &LogIdentity) -> Checkpointed {
        // A partition that the checkpoints do not know was made after them: nothing of it may be trusted unread.
        let Some(known) = log_dir.take_checkpointed(&identity.topic_partition) else { return Checkpointed::default() };
        let dir = log_dir.path.join(identity.topic_partition.dir_name());
        // A file that cannot be read is met again when the log is opened.
        let is_anothers = |found: Option<TopicId>| found.is_some_and(|found| found != identity.topic_id);
        if !known.is_nothing() && !self.disk().exists(&dir) {
            // Checkpoints of a clean stop name nothing that was not there: it was taken away since, and is short by all it had.
            let lost = if known.clean_shutdown { known.recovery_point } else { 0 };
            return Checkpointed { clean_shutdown: lost > 0, recovery_point: lost, ..Checkpointed::default() };
        }
        let may_be = known.is_nothing() || !read_topic_id(self.disk(), &dir).is_ok_and(is_anothers);
        if may_be { known } else { Checkpointed::default() }
    }

    /// Ends a partition that this node has no replica of any more. Its directory is renamed at once, so that the name is free, and
    /// removed later.
    fn retire(&self, partition: &Arc<Partition>) {
        partition.stop_replicating();
        let log_dir = partition.log_dir().clone();
        let dir = partition.dir();
        if partition.is_missing() {
            partition.retire();
            return;
        }
        if let Some(log) = partition.retire() {
            log.retire();
        }
        self.end_move(partition);
        log_dir.lost_replica();
        log_dir.take_checkpointed(&partition.identity.topic_partition);
        self.rename_for_removal(partition, &dir);
    }

    /// The name is free when this returns.
    pub(super) fn rename_for_removal(&self, partition: &Partition, dir: &Path) {
        let doomed = self.retired_path(partition, dir);
        match self.env.host.disk.rename(dir, &doomed) {
            Ok(()) => self.doom(doomed, 0),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let partition = &partition.identity.topic_partition;
                tracing::error!(%partition, dir = %dir.display(), %error, "cannot set a removed partition's directory aside");
            }
        }
    }

    /// What a partition's directory is called from its end to its removal.
    pub(super) fn retired_path(&self, partition: &Partition, dir: &Path) -> PathBuf {
        let LogIdentity { topic_partition, topic_id } = &partition.identity;
        // A replica may come back and go away again before the first one is removed.
        let unique = format!("{topic_id}{}", self.env.host.entropy.uuid().simple());
        dir.with_file_name(retired_dir_name(&topic_partition.dir_name(), &unique))
    }

    /// A log's start moved, or could not be written: the checkpoint must say so soon.
    pub(super) fn note_start_moved(&self) {
        self.starts_moved.store(true, Ordering::Release);
    }

    pub(super) fn take_starts_moved(&self) -> bool {
        self.starts_moved.swap(false, Ordering::AcqRel)
    }
}
