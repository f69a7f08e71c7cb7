//! A broker's life in the cluster: it registers with the active controller, tells it every now and then that it lives, serves while it is
//! not fenced, and asks to be relieved before it stops. (KIP-631; the requests are Kafka's.)

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::api::Broker;
use crate::api::brokers::broker_registration::remembered_field;
use crate::api::peers::active::{self, AskError};
use crate::base::ErrorCode;
use crate::config::LifecycleSettings;
use crate::controller::decide::features::SUPPORTED_FEATURES;
use crate::host::task;
use crate::metadata::Endpoint;
use crate::wire::messages::broker_registration_request::{Feature, Listener};
use crate::wire::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, StrBytes};

/// How long one question to the active controller may take.
const ASK_MAX: Duration = Duration::from_secs(2);

/// Pauses between attempts to register.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How long a stop waits for the active controller to move leaderships away, as Kafka waits.
const RELIEF_MAX: Duration = Duration::from_secs(60);

/// How long a stop waits for an active controller that does not answer.
const SILENCE_MAX: Duration = Duration::from_secs(6);

/// What a broker says of itself when it registers.
pub struct Credentials {
    pub incarnation: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub rack: Option<String>,
    pub directories: Vec<Uuid>,
    /// The epoch of the run before, if that ended cleanly.
    pub previous_epoch: Option<i64>,
    /// Former lives that its directories remember.
    pub remembered: Vec<Uuid>,
}

/// Where the broker stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The epoch of the registration; `None` before it.
    pub epoch: Option<i64>,
    pub fenced: bool,
    pub may_stop: bool,
    /// What it waits for, for whoever asks why it is not ready.
    pub waits_for: String,
}

pub struct Lifecycle {
    broker: Arc<Broker>,
    credentials: Credentials,
    settings: LifecycleSettings,
    standing: watch::Sender<Standing>,
    wishes: parking_lot::Mutex<Wishes>,
    /// Rung when there is something to tell at once.
    news: Notify,
}

#[derive(Clone, Copy)]
struct Wishes {
    /// Not before the logs are open.
    serve: bool,
    stop: bool,
}

impl Lifecycle {
    pub fn new(broker: Arc<Broker>, credentials: Credentials, settings: LifecycleSettings) -> Arc<Lifecycle> {
        let standing = Standing {
            epoch: None,
            fenced: true,
            may_stop: false,
            waits_for: "there is no active controller yet".into(),
        };
        Arc::new(Lifecycle {
            broker,
            credentials,
            settings,
            standing: watch::Sender::new(standing),
            wishes: parking_lot::Mutex::new(Wishes { serve: false, stop: false }),
            news: Notify::new(),
        })
    }

    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// The logs are open: from now on the broker asks to be unfenced.
    pub fn may_serve(&self) {
        self.wishes.lock().serve = true;
        self.news.notify_one();
    }

    /// Keeps the registration alive. Never ends.
    pub async fn run(self: Arc<Self>) {
        loop {
            let epoch = self.register().await;
            self.broker.epoch.store(epoch, Ordering::Release);
            self.broker.partitions.set_broker_epoch(epoch);
            self.standing.send_modify(|standing| standing.epoch = Some(epoch));
            self.keep_alive(epoch).await;
        }
    }

    /// Asks until there is a registration.
    async fn register(&self) -> i64 {
        let mut pause = PAUSE_FIRST;
        let mut complaint = String::new();
        loop {
            let mut is_final = false;
            let why = match active::ask(&self.broker, &self.registration(), ASK_MAX).await {
                Ok(answer) if answer.error_code == 0 => {
                    tracing::info!(epoch = answer.broker_epoch, "registered with the active controller");
                    return answer.broker_epoch;
                }
                Ok(answer) => {
                    let code = ErrorCode(answer.error_code);
                    is_final = code == ErrorCode::STALE_BROKER_EPOCH || code == ErrorCode::INCONSISTENT_CLUSTER_ID;
                    refusal(code)
                }
                Err(AskError::NoController) => "there is no active controller yet".to_owned(),
                Err(error) => error.to_string(),
            };
            self.standing.send_modify(|standing| standing.waits_for.clone_from(&why));
            if why != complaint {
                if is_final {
                    tracing::error!("this broker is kept out: {why}");
                } else {
                    tracing::info!("not registered yet: {why}");
                }
                complaint = why;
            }
            let mut leadership = self.broker.controller.quorum().leadership();
            leadership.mark_unchanged();
            tokio::select! {
                () = task::sleep(pause) => pause = (pause * 2).min(PAUSE_MAX),
                _ = leadership.changed() => pause = PAUSE_FIRST,
            }
        }
    }

    fn registration(&self) -> BrokerRegistrationRequest {
        let text = |text: &str| StrBytes::from_string(text.to_owned());
        let listener = |endpoint: &Endpoint| {
            // Kafka's number for PLAINTEXT; others come with TLS and SASL.
            Listener::default()
                .with_name(text(&endpoint.listener))
                .with_host(text(&endpoint.host))
                .with_port(endpoint.port)
                .with_security_protocol(0)
        };
        let features = SUPPORTED_FEATURES.iter().map(|feature| {
            Feature::default()
                .with_name(StrBytes::from_static_str(feature.name))
                .with_min_supported_version(feature.min)
                .with_max_supported_version(feature.max)
        });
        let one = &self.credentials;
        BrokerRegistrationRequest::default()
            .with_broker_id(self.broker.options.node_id.into())
            .with_cluster_id(text(&self.broker.peers.myself().cluster_id()))
            .with_incarnation_id(one.incarnation)
            .with_listeners(one.endpoints.iter().map(listener).collect())
            .with_features(features.collect())
            .with_rack(one.rack.as_deref().map(text))
            .with_log_dirs(self.working_directories())
            .with_previous_broker_epoch(one.previous_epoch.unwrap_or(-1))
            .with_unknown_tagged_fields(remembered_field(&one.remembered))
    }

    /// Those that have not failed since the start.
    fn working_directories(&self) -> Vec<Uuid> {
        let failed = self.broker.partitions.dirs().failed_ids();
        self.credentials.directories.iter().copied().filter(|id| !failed.contains(id)).collect()
    }

    /// Heartbeats until the registration does not hold any more.
    async fn keep_alive(&self, epoch: i64) {
        let interval = Duration::from_millis(self.settings.heartbeat_interval_ms);
        let mut leadership = self.broker.controller.quorum().leadership();
        let mut heard = self.broker.host.clock.monotonic_ms();
        let mut failures = self.broker.partitions.dirs().failures();
        loop {
            leadership.mark_unchanged();
            failures.mark_unchanged();
            let sent = self.broker.host.clock.monotonic_ms();
            let pause = match active::ask(&self.broker, &self.heartbeat(epoch), ASK_MAX).await {
                Ok(answer) => match ErrorCode(answer.error_code) {
                    ErrorCode::NONE => {
                        // Not when the answer is read: it may have lain there while this process stood still.
                        heard = sent;
                        self.broker.partitions.set_session_end(sent.saturating_add(self.settings.session_timeout_ms));
                        self.note(&answer);
                        let is_changing = answer.is_fenced || self.wishes.lock().stop;
                        if is_changing { interval.min(PAUSE_FIRST * 5) } else { interval }
                    }
                    ErrorCode::STALE_BROKER_EPOCH | ErrorCode::BROKER_ID_NOT_REGISTERED => {
                        tracing::warn!(
                            epoch,
                            "the active controller does not know this registration; registering again"
                        );
                        self.fence("registering again");
                        return;
                    }
                    _ => PAUSE_FIRST * 2,
                },
                Err(error) => {
                    tracing::debug!(%error, "no heartbeat");
                    PAUSE_FIRST * 4
                }
            };
            let silent_ms = self.broker.host.clock.monotonic_ms().saturating_sub(heard);
            if silent_ms > self.settings.session_timeout_ms {
                // The controller has given this broker's leaderships to others by now.
                self.fence("no active controller has answered for longer than broker.session.timeout.ms");
            }
            tokio::select! {
                () = task::sleep(pause) => {}
                () = self.news.notified() => {}
                // Its leaders are to move at once.
                _ = failures.changed() => {}
                _ = leadership.changed() => {}
            }
        }
    }

    fn heartbeat(&self, epoch: i64) -> BrokerHeartbeatRequest {
        let wishes = *self.wishes.lock();
        BrokerHeartbeatRequest::default()
            .with_offline_log_dirs(self.broker.partitions.dirs().failed_ids())
            .with_broker_id(self.broker.options.node_id.into())
            .with_broker_epoch(epoch)
            .with_current_metadata_offset(*self.broker.partitions.applied().borrow())
            .with_want_fence(!wishes.serve)
            .with_want_shut_down(wishes.stop)
    }

    fn note(&self, answer: &BrokerHeartbeatResponse) {
        let told = self.standing.borrow().clone();
        if told.fenced && !answer.is_fenced {
            tracing::info!("unfenced: this broker serves");
        } else if !told.fenced && answer.is_fenced && !answer.should_shut_down {
            tracing::warn!("fenced by the active controller: this broker leads nothing until it is let in again");
        }
        self.broker.note_fenced(answer.is_fenced);
        self.standing.send_if_modified(|standing| {
            let next = Standing {
                epoch: standing.epoch,
                fenced: answer.is_fenced,
                may_stop: answer.should_shut_down,
                waits_for: if answer.is_caught_up { "fenced by the active controller" } else { "reading the metadata" }
                    .into(),
            };
            let is_news = *standing != next;
            *standing = next;
            is_news
        });
    }

    /// This broker holds itself for fenced: it acknowledges nothing as a leader.
    fn fence(&self, why: &str) {
        if self.standing.borrow().fenced {
            return;
        }
        tracing::warn!("{why}: this broker stops acting as a leader");
        self.broker.note_fenced(true);
        self.standing.send_modify(|standing| {
            standing.fenced = true;
            standing.waits_for = why.to_owned();
        });
    }

    /// Asks the active controller to move what this broker leads to others, and waits until it has, within bounds.
    pub async fn be_relieved(&self) {
        if !self.settings.controlled_shutdown || self.has_nobody_else() {
            return;
        }
        self.wishes.lock().stop = true;
        self.news.notify_one();
        let mut standing = self.standing.subscribe();
        let relieved = task::timeout(RELIEF_MAX, async {
            loop {
                match task::timeout(SILENCE_MAX, standing.wait_for(|standing| standing.may_stop)).await {
                    Some(_) => return true,
                    None if self.broker.controller.quorum().leadership().borrow().leader.is_none() => return false,
                    None => {}
                }
            }
        });
        match relieved.await {
            Some(true) => tracing::info!("other brokers have taken over"),
            _ => tracing::warn!("stopping without the active controller's leave; others take over a little later"),
        }
    }

    /// Whether nobody could take over: then nobody is asked.
    fn has_nobody_else(&self) -> bool {
        let own = self.broker.options.node_id;
        let image = self.broker.image();
        !image.live_brokers().any(|broker| broker.id != own)
    }
}

/// What the active controller has against the registration, and what to do about it.
fn refusal(code: ErrorCode) -> String {
    match code {
        ErrorCode::DUPLICATE_BROKER_REGISTRATION => {
            "another node with this node.id is alive: stop it, or give this one another node.id".to_owned()
        }
        ErrorCode::INCONSISTENT_CLUSTER_ID => {
            "the controllers belong to another cluster: correct controller.quorum.voters, or use an empty log directory"
                .to_owned()
        }
        ErrorCode::UNSUPPORTED_VERSION => {
            "the cluster's features are at levels that this version does not have: use a newer version".to_owned()
        }
        ErrorCode::STALE_BROKER_EPOCH => {
            "the log directories are older than what the cluster knows of this broker: they are a copy that was put back, or a disk is not \
             mounted. Bring the newest ones; or, if there are none, start with empty ones (docs/operations.md, Replacing a broker), \
             and what others have is fetched from them"
                .to_owned()
        }
        ErrorCode::NOT_CONTROLLER => "there is no active controller yet".to_owned(),
        code => format!("the active controller refuses this broker with error code {}", code.code()),
    }
}
