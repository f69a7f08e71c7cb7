//! One run of a node's process, as the cluster sees it from outside.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::Broker;
use crate::config::BrokerSettings;
use crate::host::Host;
use crate::host::life::Life;
use crate::server::Node;
use crate::telemetry::logs::LogControl;

/// How far a process has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Starting,
    Serving,
    /// It ended by itself or was told to; the sentence says why it could not go on, if it could not.
    Ended(Option<String>),
}

pub struct Process {
    life: Arc<Life>,
    broker: Rc<RefCell<Option<Arc<Broker>>>>,
    stage: watch::Receiver<Stage>,
    stop: watch::Sender<bool>,
}

impl Process {
    pub fn begin(life: Arc<Life>, host: Host, settings: BrokerSettings) -> Process {
        let broker = Rc::new(RefCell::new(None));
        let (told, stage) = watch::channel(Stage::Starting);
        let (stop, stopping) = watch::channel(false);
        let shown = broker.clone();
        life.begin(async move {
            let ended = run(host, settings, &shown, &told, stopping).await;
            shown.borrow_mut().take();
            told.send_replace(Stage::Ended(ended));
        });
        Process { life, broker, stage, stop }
    }

    /// What its handlers see; `None` before it listens and once it stops.
    pub fn broker(&self) -> Option<Arc<Broker>> {
        self.broker.borrow().clone()
    }

    pub fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.clone()
    }

    /// SIGTERM.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub fn stand_still(&self) {
        self.life.stand_still();
    }

    pub fn go_on(&self) {
        self.life.go_on();
    }

    /// All that is left of it is gone when this returns.
    pub async fn end(self) {
        self.broker.borrow_mut().take();
        self.life.end().await;
    }
}

async fn run(
    host: Host,
    settings: BrokerSettings,
    shown: &RefCell<Option<Arc<Broker>>>,
    told: &watch::Sender<Stage>,
    mut stopping: watch::Receiver<bool>,
) -> Option<String> {
    let node = match Node::start(host, settings, LogControl::detached("info").unwrap()).await {
        Ok(node) => node,
        Err(error) => return Some(format!("cannot start: {error}")),
    };
    *shown.borrow_mut() = Some(node.broker().clone());
    let serving = async {
        if node.serving().await.is_ok() {
            told.send_replace(Stage::Serving);
        }
        std::future::pending::<()>().await;
    };
    let failed = tokio::select! {
        biased;
        _ = stopping.wait_for(|stop| *stop) => None,
        why = node.failed() => Some(why.to_string()),
        () = serving => None,
    };
    shown.borrow_mut().take();
    let stopped = node.stop().await;
    failed.or(stopped.err().map(|error| format!("cannot stop cleanly: {error}")))
}
