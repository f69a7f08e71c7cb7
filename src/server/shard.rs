//! Threads that own connections. Each runs one event loop; a connection stays on its thread for life, so a request is read, worked
//! on and answered without a hop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::api::Broker;
use crate::api::context::{ConnectionInfo, Door};
use crate::host::net;
use crate::host::task::{self, Worker};
use crate::server::connection::Connection;
use crate::server::refusal;
use crate::telemetry::ListenerMetrics;

/// What a connection is served by, whichever thread it lands on.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// `socket.request.max.bytes`
    pub request_bytes_max: usize,
    /// `connections.max.idle.ms`
    pub idle_max: Duration,
}

/// An accepted socket on its way to a shard.
pub struct Arrival {
    pub accepted: net::Accepted,
    pub listener: Arc<str>,
    pub door: Door,
    pub metrics: Arc<ListenerMetrics>,
    /// Dropped when the connection ends: gives back its place in the connection limits.
    pub permit: Box<dyn Send>,
}

/// One thread's inbox.
struct Shard {
    inbox: mpsc::UnboundedSender<Arrival>,
    open: Arc<AtomicUsize>,
}

/// All threads.
pub struct Shards {
    shards: Vec<Shard>,
    workers: parking_lot::Mutex<Vec<Worker>>,
    stopping: watch::Sender<bool>,
}

impl Shards {
    pub fn start(count: usize, broker: &Arc<Broker>, limits: ConnectionLimits) -> std::io::Result<Shards> {
        let stopping = watch::Sender::new(false);
        let mut shards = Vec::with_capacity(count);
        let mut workers = Vec::with_capacity(count);
        for index in 0..count {
            let (inbox, arrivals) = mpsc::unbounded_channel();
            let open = Arc::new(AtomicUsize::new(0));
            let owner = Owner { broker: broker.clone(), limits, open: open.clone(), stopping: stopping.subscribe() };
            workers.push(broker.host.workers.start(&format!("shard-{index}"), move || owner.run(arrivals))?);
            shards.push(Shard { inbox, open });
        }
        Ok(Shards { shards, workers: parking_lot::Mutex::new(workers), stopping })
    }

    /// Hands a socket to the thread with the fewest connections.
    pub fn admit(&self, arrival: Arrival) {
        let Some(shard) = self.shards.iter().min_by_key(|shard| shard.open.load(Ordering::Relaxed)) else { return };
        shard.open.fetch_add(1, Ordering::Relaxed);
        if shard.inbox.send(arrival).is_err() {
            shard.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets every connection finish what is in flight, then ends the threads.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        let workers = std::mem::take(&mut *self.workers.lock());
        for worker in workers {
            if !worker.ended().await {
                tracing::error!("a connection thread panicked");
            }
        }
    }
}

/// How long connections may take to finish what is in flight when the broker stops.
const STOP_GRACE: Duration = Duration::from_secs(5);

struct Owner {
    broker: Arc<Broker>,
    limits: ConnectionLimits,
    open: Arc<AtomicUsize>,
    stopping: watch::Receiver<bool>,
}

/// Numbers connections over all shards and listeners.
static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

impl Owner {
    async fn run(self, mut arrivals: mpsc::UnboundedReceiver<Arrival>) {
        let mut tasks = tokio::task::JoinSet::new();
        let mut stopping = self.stopping.clone();
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => break,
                arrived = arrivals.recv() => match arrived {
                    Some(arrival) => self.spawn(&mut tasks, arrival),
                    None => break,
                },
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report_panic(ended),
            }
        }
        let drained = async {
            while let Some(ended) = tasks.join_next().await {
                report_panic(ended);
            }
        };
        if task::timeout(STOP_GRACE, drained).await.is_none() {
            tracing::warn!("connections did not finish in {STOP_GRACE:?}; closing them");
        }
    }

    fn spawn(&self, tasks: &mut tokio::task::JoinSet<()>, arrival: Arrival) {
        let (broker, limits, open) = (self.broker.clone(), self.limits, self.open.clone());
        let mut stopping = self.stopping.clone();
        task::spawn_into(tasks, async move {
            let Arrival { accepted, listener, door, metrics, permit } = arrival;
            let _permit = permit;
            let _counted = Counted::new(open, metrics.clone());
            let id = NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed);
            let info = Arc::new(ConnectionInfo::new(id, accepted.peer, accepted.local, listener, door));
            let stream = match accepted.stream.attach() {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(peer = %info.peer, %error, "cannot take over an accepted connection");
                    return;
                }
            };
            let mut connection =
                Connection::new(stream, info.clone(), broker.clone(), limits.request_bytes_max, metrics);
            let stop = async move {
                let _ = stopping.wait_for(|stop| *stop).await;
            };
            let end = connection.run(limits.idle_max, stop).await;
            refusal::report(&broker, &info, &end);
            if let Some(node) = info.peer_node.get() {
                broker.note_peer_gone(node);
            }
        });
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked; the connection was closed");
    }
}

/// Counts a connection while it lives.
struct Counted {
    open: Arc<AtomicUsize>,
    metrics: Arc<ListenerMetrics>,
}

impl Counted {
    fn new(open: Arc<AtomicUsize>, metrics: Arc<ListenerMetrics>) -> Counted {
        metrics.opened();
        Counted { open, metrics }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.metrics.closed();
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
