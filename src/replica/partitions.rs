//! All partitions of this node, found by name or id, kept in step with the metadata image.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::base::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicPartition};
use crate::host::Disk;
use crate::log::checkpoints::Offsets;
use crate::log::{LogEnv, LogError, LogIdentity, is_retired_dir_name, read_topic_id, retired_dir_name};
use crate::metadata::config::LogConfig;
use crate::metadata::{Image, NO_METADATA, Topic};
use crate::records::AppendRules;
use crate::replica::append_rules::append_rules;
use crate::replica::checkpoints::{Checkpoints, save_high_watermarks};
use crate::replica::dir_health::DirHealth;
use crate::replica::leader::Rules;
use crate::replica::partition::{Checkpointed, Partition};
use crate::replica::role::{Common, ReplicaOptions};
use crate::replica::strays::set_aside;
use crate::replica::throttle::{FOLLOWER_RATE, LEADER_RATE};
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
}

#[derive(Default)]
struct Table {
    by_name: HashMap<Arc<str>, Arc<TopicReplicas>>,
    by_id: HashMap<TopicId, Arc<TopicReplicas>>,
}

/// Directories of deleted partitions that are removed before the housekeeper looks at its other duties.
const REMOVED_AT_ONCE: usize = 64;

/// How topics get their effective configuration: overrides of the image over this node's own settings.
pub type ConfigSource = Box<dyn Fn(&Image, &str) -> LogConfig + Send + Sync>;

pub struct Partitions {
    env: LogEnv,
    health: Arc<DirHealth>,
    log_dir: PathBuf,
    common: Arc<Common>,
    config_source: ConfigSource,
    telemetry: Arc<Telemetry>,
    table: ArcSwap<Table>,
    /// Serialises [`Partitions::apply`].
    applying: Mutex<()>,
    applied: watch::Sender<i64>,
    checkpointed: Mutex<HashMap<TopicPartition, Checkpointed>>,
    /// What the checkpoint files say now.
    saved: Mutex<Checkpoints>,
    starts_moved: AtomicBool,
    /// Directories of deleted topics that wait for their removal.
    doomed: Mutex<Vec<PathBuf>>,
}

impl Partitions {
    pub fn new(
        env: LogEnv,
        log_dir: PathBuf,
        options: ReplicaOptions,
        config_source: ConfigSource,
        telemetry: Arc<Telemetry>,
        checkpoints: &Checkpoints,
    ) -> Partitions {
        Partitions {
            env,
            health: Arc::new(DirHealth::default()),
            log_dir,
            common: Arc::new(Common::new(options)),
            config_source,
            telemetry,
            table: ArcSwap::from_pointee(Table::default()),
            applying: Mutex::new(()),
            applied: watch::Sender::new(NO_METADATA),
            checkpointed: Mutex::new(by_partition(checkpoints)),
            saved: Mutex::new(Checkpoints { clean_shutdown: false, ..checkpoints.clone() }),
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

    /// Why the log directory is offline, if it is.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.health.failure().cloned()
    }

    pub fn log_dir(&self) -> &Path {
        &self.log_dir
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

    /// Takes retired partitions out of the checkpoint files, which know names only: what they say would be believed of a new topic of the
    /// name, or of a replica that comes back.
    fn forget(&self, gone: &[Arc<Partition>], table: &Table) {
        let mut saved = self.saved.lock();
        let remembers = |offsets: &Offsets| {
            let of = |partition: &Arc<Partition>| offsets.get(&partition.identity.topic_partition).copied();
            gone.iter().filter_map(of).any(|offset| offset > 0)
        };
        let in_points = remembers(&saved.recovery_points) || remembers(&saved.log_start_offsets);
        let in_watermarks = remembers(&saved.high_watermarks);
        let points_saved = !in_points || self.save_points(&mut saved, table);
        let watermarks_saved = !in_watermarks || self.save_watermarks(&mut saved, table);
        if !points_saved || !watermarks_saved {
            self.note_start_moved();
        }
    }

    /// Brings the checkpoint files up to date, but for the high watermarks.
    pub(super) fn save_checkpoints(&self) {
        let mut saved = self.saved.lock();
        self.save_points(&mut saved, &self.table.load());
    }

    /// Before a log is cut at `to`, which it knows already: no checkpoint file says more of it afterwards, or it would be believed of
    /// what comes in the place of what is cut. `false` when that cannot be written.
    pub(super) fn save_cut(&self, partition: &TopicPartition, to: Offset) -> bool {
        let mut saved = self.saved.lock();
        let says_more = |offsets: &Offsets| offsets.get(partition).is_some_and(|offset| *offset > to);
        let in_points = says_more(&saved.recovery_points) || says_more(&saved.log_start_offsets);
        let in_watermarks = says_more(&saved.high_watermarks);
        (!in_points || self.save_points(&mut saved, &self.table.load()))
            && (!in_watermarks || self.save_watermarks(&mut saved, &self.table.load()))
    }

    /// What consumers could read before a restart they can read soon after it.
    pub(super) fn save_high_watermarks(&self) {
        let mut saved = self.saved.lock();
        self.save_watermarks(&mut saved, &self.table.load());
    }

    fn save_points(&self, saved: &mut Checkpoints, table: &Table) -> bool {
        let current = checkpoints_of(table);
        if current.recovery_points == saved.recovery_points && current.log_start_offsets == saved.log_start_offsets {
            return true;
        }
        match current.save(self.disk(), &self.log_dir) {
            Ok(()) => {
                saved.recovery_points = current.recovery_points;
                saved.log_start_offsets = current.log_start_offsets;
                true
            }
            Err(error) => {
                tracing::error!(%error, "cannot write the checkpoint files; recovery would take longer");
                false
            }
        }
    }

    fn save_watermarks(&self, saved: &mut Checkpoints, table: &Table) -> bool {
        let current = high_watermarks_of(table);
        if current == saved.high_watermarks {
            return true;
        }
        match save_high_watermarks(self.disk(), &self.log_dir, &current) {
            Ok(()) => {
                saved.high_watermarks = current;
                true
            }
            Err(error) => {
                tracing::error!(%error, "cannot write the high watermarks; consumers would wait after a restart");
                false
            }
        }
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
                    self.new_partition(source, PartitionIndex::try_from(index).unwrap_or(PartitionIndex::MAX), &config)
                }
            };
            let unchanged = before.is_some()
                && !configs_changed
                && known
                    .is_some_and(|known| known.source.partitions.get(index).is_some_and(|old| Arc::ptr_eq(old, state)));
            if !unchanged {
                partition.apply(state);
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

    fn new_partition(&self, topic: &Topic, index: PartitionIndex, config: &Arc<LogConfig>) -> Arc<Partition> {
        let topic_partition = TopicPartition::new(topic.name.clone(), index);
        let dir = self.log_dir.join(topic_partition.dir_name());
        // A partition that the checkpoints do not know was made after them: nothing of it may be trusted unread.
        let checkpointed = self.checkpointed.lock().remove(&topic_partition);
        let checkpointed = checkpointed.filter(|known| known.is_nothing() || self.may_belong_to(topic.id, &dir));
        let checkpointed = checkpointed.unwrap_or_default();
        let identity = LogIdentity { topic_partition, topic_id: topic.id };
        let (env, common, health) = (self.env.clone(), self.common.clone(), self.health.clone());
        Arc::new(Partition::new(env, common, health, dir, identity, config.clone(), checkpointed))
    }

    /// Whether what was remembered of the directory's name can have been said of this topic.
    fn may_belong_to(&self, id: TopicId, dir: &Path) -> bool {
        // A file that cannot be read is met again when the log is opened.
        let is_anothers = |found: Option<TopicId>| found.is_some_and(|found| found != id);
        self.disk().exists(dir) && !read_topic_id(self.disk(), dir).is_ok_and(is_anothers)
    }

    /// Ends a partition that this node has no replica of any more. Its directory is renamed at once, so that the name is free, and
    /// removed later.
    fn retire(&self, partition: &Arc<Partition>) {
        partition.stop_replicating();
        if let Some(log) = partition.retire() {
            log.retire();
        }
        let LogIdentity { topic_partition, topic_id } = &partition.identity;
        self.checkpointed.lock().remove(topic_partition);
        // A replica may come back and go away again before the first one is removed.
        let unique = format!("{topic_id}{}", self.env.host.entropy.uuid().simple());
        let doomed = self.log_dir.join(retired_dir_name(&topic_partition.dir_name(), &unique));
        match self.env.host.disk.rename(&partition.dir, &doomed) {
            Ok(()) => self.doomed.lock().push(doomed),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!(partition = %topic_partition, %error, "cannot set a removed partition's directory aside");
            }
        }
    }

    /// Removes some of what deleted topics left behind, until `is_stopping`; the next start removes what is left then. Blocks.
    /// `true` when more could be removed now.
    pub fn remove_doomed(&self, is_stopping: impl Fn() -> bool) -> bool {
        let batch: Vec<_> = {
            let mut doomed = self.doomed.lock();
            let count = doomed.len().min(REMOVED_AT_ONCE);
            doomed.drain(..count).collect()
        };
        let mut kept = Vec::new();
        for dir in batch {
            if is_stopping() {
                return false;
            }
            if let Err(error) = self.env.host.disk.remove_dir_all(&dir) {
                tracing::warn!(dir = %dir.display(), %error, "cannot remove a deleted partition's directory; trying again later");
                kept.push(dir);
            }
        }
        let mut doomed = self.doomed.lock();
        let more = kept.is_empty() && !doomed.is_empty();
        doomed.extend(kept);
        more
    }

    /// Looks once, at start, for what no topic of the image owns. Half-deleted directories go, unknown ones are set aside, and what
    /// the checkpoint files say of others is forgotten. Only when an image has taken effect that knows all topics that had a directory
    /// here before the start.
    pub fn sweep_strays(&self) -> std::io::Result<()> {
        let disk = &self.env.host.disk;
        for entry in disk.read_dir(&self.log_dir)?.into_iter().filter(|entry| entry.is_dir) {
            let path = self.log_dir.join(&entry.name);
            if is_retired_dir_name(&entry.name) {
                self.doomed.lock().push(path);
            } else if let Some(found) = TopicPartition::parse_dir_name(&entry.name) {
                let known = self.partition(&found.topic, found.partition).is_some();
                let is_ours = known || entry.name.starts_with("__cluster_metadata-");
                if !is_ours && let Err(error) = set_aside(&self.env.host, &path) {
                    tracing::error!(dir = %path.display(), %error, "no topic owns this partition directory, and it cannot be set aside");
                }
            }
        }
        self.checkpointed.lock().clear();
        self.save_checkpoints();
        self.save_high_watermarks();
        Ok(())
    }

    /// A log's start moved by request: the checkpoint must say so soon.
    pub fn note_start_moved(&self) {
        self.starts_moved.store(true, Ordering::Release);
    }

    pub(super) fn take_starts_moved(&self) -> bool {
        self.starts_moved.swap(false, Ordering::AcqRel)
    }

    /// Closes every log in order and marks the directory as cleanly shut down. Blocks.
    pub fn close(&self, broker_epoch: i64) -> Result<(), LogError> {
        if let Some(failure) = self.failure() {
            tracing::warn!(%failure, "the log directory is offline: it is not marked as cleanly shut down");
            return Ok(());
        }
        let mut saved = self.saved.lock();
        let mut checkpoints = self.checkpoints();
        let high_watermarks = self.high_watermarks();
        let mut unchecked = 0;
        for topic in self.topics() {
            for partition in topic.partitions.iter().flatten() {
                unchecked += usize::from(partition.is_unchecked());
                if let Some(log) = partition.retire() {
                    let end = log.log_end_offset();
                    log.close()?;
                    checkpoints.recovery_points.insert(partition.identity.topic_partition.clone(), end);
                }
            }
        }
        checkpoints.save(self.disk(), &self.log_dir)?;
        save_high_watermarks(self.disk(), &self.log_dir, &high_watermarks)?;
        *saved = Checkpoints { high_watermarks, ..checkpoints };
        if unchecked > 0 {
            tracing::warn!(
                unchecked,
                "not all logs could be checked: the log directory is not marked as cleanly shut down"
            );
            return Ok(());
        }
        crate::log::checkpoints::mark_clean_shutdown(self.disk(), &self.log_dir, broker_epoch)
    }

    /// The content of `replication-offset-checkpoint` as of now.
    pub fn high_watermarks(&self) -> Offsets {
        high_watermarks_of(&self.table.load())
    }

    /// The checkpoint files' content as of now, without the high watermarks.
    pub fn checkpoints(&self) -> Checkpoints {
        checkpoints_of(&self.table.load())
    }
}

fn checkpoints_of(table: &Table) -> Checkpoints {
    let mut checkpoints = Checkpoints::default();
    for partition in table.by_name.values().flat_map(|topic| topic.partitions.iter().flatten()) {
        if let Some(at) = partition.checkpoint() {
            let name = &partition.identity.topic_partition;
            checkpoints.recovery_points.insert(name.clone(), at.recovery_point);
            if let Some(start) = at.log_start_offset.filter(|start| *start > 0) {
                checkpoints.log_start_offsets.insert(name.clone(), start);
            }
        }
    }
    checkpoints
}

fn high_watermarks_of(table: &Table) -> Offsets {
    let mut offsets = Offsets::new();
    for topic in table.by_name.values() {
        for (partition, state) in topic.partitions.iter().zip(&topic.source.partitions) {
            let Some(partition) = partition.as_ref().filter(|_| state.replicas.len() > 1) else { continue };
            if let Some(at) = partition.checkpoint() {
                offsets.insert(partition.identity.topic_partition.clone(), at.high_watermark);
            }
        }
    }
    offsets
}

fn by_partition(checkpoints: &Checkpoints) -> HashMap<TopicPartition, Checkpointed> {
    let known = checkpoints.recovery_points.keys().chain(checkpoints.high_watermarks.keys());
    known
        .map(|name| {
            let checkpointed = Checkpointed {
                clean_shutdown: checkpoints.clean_shutdown,
                recovery_point: checkpoints.recovery_points.get(name).copied().unwrap_or(0),
                log_start_offset: checkpoints.log_start_offsets.get(name).copied(),
                high_watermark: checkpoints.high_watermarks.get(name).copied().unwrap_or(0),
            };
            (name.clone(), checkpointed)
        })
        .collect()
}
