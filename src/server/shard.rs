//! Threads that own connections. Each runs one event loop; a connection stays on its thread for life, so a request is read, worked
//! on and answered without a hop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::api::Broker;
use crate::api::context::ConnectionInfo;
use crate::host::net::TcpStream;
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
pub struct Accepted {
    pub stream: std::net::TcpStream,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    pub listener: Arc<str>,
    pub metrics: Arc<ListenerMetrics>,
    /// Dropped when the connection ends: gives back its place in the connection limits.
    pub permit: Box<dyn Send>,
}

/// One thread's inbox.
struct Shard {
    inbox: mpsc::UnboundedSender<Accepted>,
    open: Arc<AtomicUsize>,
}

/// All threads.
pub struct Shards {
    shards: Vec<Shard>,
    threads: parking_lot::Mutex<Vec<JoinHandle<()>>>,
    stopping: watch::Sender<bool>,
}

impl Shards {
    pub fn start(count: usize, broker: &Arc<Broker>, limits: ConnectionLimits) -> std::io::Result<Shards> {
        let stopping = watch::Sender::new(false);
        let mut shards = Vec::with_capacity(count);
        let mut threads = Vec::with_capacity(count);
        for index in 0..count {
            let (inbox, arrivals) = mpsc::unbounded_channel();
            let open = Arc::new(AtomicUsize::new(0));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let worker = Worker { broker: broker.clone(), limits, open: open.clone(), stopping: stopping.subscribe() };
            let thread = std::thread::Builder::new()
                .name(format!("shard-{index}"))
                .spawn(move || runtime.block_on(worker.run(arrivals)))?;
            shards.push(Shard { inbox, open });
            threads.push(thread);
        }
        Ok(Shards { shards, threads: parking_lot::Mutex::new(threads), stopping })
    }

    /// Hands a socket to the thread with the fewest connections.
    pub fn admit(&self, accepted: Accepted) {
        let Some(shard) = self.shards.iter().min_by_key(|shard| shard.open.load(Ordering::Relaxed)) else { return };
        shard.open.fetch_add(1, Ordering::Relaxed);
        if shard.inbox.send(accepted).is_err() {
            shard.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets every connection finish what is in flight, then ends the threads. Blocks.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a connection thread panicked");
            }
        }
    }
}

/// How long connections may take to finish what is in flight when the broker stops.
const STOP_GRACE: Duration = Duration::from_secs(5);

struct Worker {
    broker: Arc<Broker>,
    limits: ConnectionLimits,
    open: Arc<AtomicUsize>,
    stopping: watch::Receiver<bool>,
}

/// Numbers connections over all shards and listeners.
static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

impl Worker {
    async fn run(self, mut arrivals: mpsc::UnboundedReceiver<Accepted>) {
        let mut tasks = tokio::task::JoinSet::new();
        let mut stopping = self.stopping.clone();
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => break,
                arrived = arrivals.recv() => match arrived {
                    Some(accepted) => self.spawn(&mut tasks, accepted),
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
        if crate::host::task::timeout(STOP_GRACE, drained).await.is_none() {
            tracing::warn!("connections did not finish in {STOP_GRACE:?}; closing them");
        }
    }

    fn spawn(&self, tasks: &mut tokio::task::JoinSet<()>, accepted: Accepted) {
        let (broker, limits, open) = (self.broker.clone(), self.limits, self.open.clone());
        let mut stopping = self.stopping.clone();
        tasks.spawn(async move {
            let _permit = accepted.permit;
            let _counted = Counted::new(open, accepted.metrics.clone());
            let info = Arc::new(ConnectionInfo {
                id: NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed),
                peer: accepted.peer,
                local: accepted.local,
                listener: accepted.listener,
                principal: "User:ANONYMOUS".into(),
                software: std::sync::OnceLock::new(),
                peer_node: std::sync::OnceLock::new(),
            });
            let stream = match TcpStream::from_std(accepted.stream) {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(peer = %info.peer, %error, "cannot take over an accepted connection");
                    return;
                }
            };
            let mut connection =
                Connection::new(stream, info.clone(), broker.clone(), limits.request_bytes_max, accepted.metrics);
            let stop = async move {
                let _ = stopping.wait_for(|stop| *stop).await;
            };
            let end = connection.run(limits.idle_max, stop).await;
            refusal::report(&broker, &info, &end);
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
