//! The simulated network: byte pipes in memory between named machines. What looks random in it follows from a seed; it can be told to
//! lose everything that goes from one machine to another, to break connections, and to refuse new ones.
//!
//! It behaves as TCP does: bytes arrive in order or not at all, a cut holds bytes back until it is healed (the sender's kernel sends them
//! again), and only a broken connection is told to both ends. Times are the runtime's, so with a paused clock a run takes no time.

mod pipe;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

pub use stream::SimStream;

use self::pipe::Pipe;
use super::SimEntropy;
use crate::base::NodeAddress;
use crate::host::net::{Accepted, Detached, ListenOptions, Listener, Net, Stream};

/// Ports that are given out where none is asked for.
const FIRST_FREE_PORT: u16 = 40_000;

/// The network that simulated machines share. Cheap to clone.
#[derive(Clone)]
pub struct SimNet {
    shared: Arc<Shared>,
}

/// From, to, and the door of the connections that are meant; `None`: of all.
type Way = (IpAddr, IpAddr, Option<u16>);

pub(super) struct Shared {
    state: Mutex<State>,
    entropy: SimEntropy,
    /// Rung when a cut is healed.
    healed: Notify,
    /// Every byte that was sent, in its order, in one number.
    trace: AtomicU64,
}

struct State {
    names: BTreeMap<String, IpAddr>,
    doors: BTreeMap<SocketAddr, mpsc::UnboundedSender<SimStream>>,
    cuts: BTreeSet<Way>,
    /// What bytes take longer on a way, besides the latency of all.
    delays: BTreeMap<Way, Duration>,
    /// Machines whose connections are refused.
    refusing: BTreeSet<IpAddr>,
    /// How often each machine has crashed.
    lives: BTreeMap<IpAddr, u64>,
    latency: Range<Duration>,
    /// Both directions of each connection.
    wires: Vec<(Weak<Pipe>, Weak<Pipe>)>,
    next_port: u16,
}

impl SimNet {
    pub fn new(seed: u64) -> SimNet {
        let state = State {
            names: BTreeMap::new(),
            doors: BTreeMap::new(),
            cuts: BTreeSet::new(),
            delays: BTreeMap::new(),
            refusing: BTreeSet::new(),
            lives: BTreeMap::new(),
            latency: Duration::from_micros(50)..Duration::from_millis(2),
            wires: Vec::new(),
            next_port: FIRST_FREE_PORT,
        };
        let entropy = SimEntropy::new(seed ^ 0x006e_6574);
        SimNet {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                entropy,
                healed: Notify::new(),
                trace: AtomicU64::new(0),
            }),
        }
    }

    /// A machine's view of the network, until it crashes.
    pub fn machine(&self, name: &str, ip: IpAddr) -> Arc<dyn Net> {
        let mut state = self.shared.state.lock();
        state.names.insert(name.to_owned(), ip);
        let life = state.lives.get(&ip).copied().unwrap_or(0);
        Arc::new(Machine { shared: self.shared.clone(), name: name.to_owned(), ip, life })
    }

    /// A number that is the same after the same bytes were sent in the same order between the same machines.
    pub fn trace(&self) -> u64 {
        self.shared.trace.load(Ordering::Relaxed)
    }

    /// How long bytes are under way, drawn anew for each write.
    pub fn set_latency(&self, latency: Range<Duration>) {
        self.shared.state.lock().latency = latency;
    }

    /// Nothing of `from` reaches `to` any more, and nobody is told.
    pub fn cut(&self, from: IpAddr, to: IpAddr) {
        self.shared.state.lock().cuts.insert((from, to, None));
    }

    /// The same for connections to one door alone, whichever of the two has it.
    pub fn cut_at_door(&self, from: IpAddr, to: IpAddr, port: u16) {
        self.shared.state.lock().cuts.insert((from, to, Some(port)));
    }

    /// Whatever was cut on the way from `from` to `to`, at one door or all.
    pub fn heal(&self, from: IpAddr, to: IpAddr) {
        self.shared.state.lock().cuts.retain(|(one, other, _)| (*one, *other) != (from, to));
        self.wake_all();
    }

    /// What `from` sends to `to` on connections to a door takes longer by so much.
    pub fn delay_at_door(&self, from: IpAddr, to: IpAddr, port: u16, by: Duration) {
        self.shared.state.lock().delays.insert((from, to, Some(port)), by);
    }

    /// The ways from `from` to `to` are as fast as any other.
    pub fn hurry(&self, from: IpAddr, to: IpAddr) {
        self.shared.state.lock().delays.retain(|(one, other, _), _| (*one, *other) != (from, to));
    }

    pub fn heal_all(&self) {
        let mut state = self.shared.state.lock();
        state.cuts.clear();
        state.delays.clear();
        drop(state);
        self.wake_all();
    }

    /// Connections between the two are reset; new ones may be made.
    pub fn break_between(&self, one: IpAddr, other: IpAddr) {
        self.reset(|pipe| pipe.is_between(one, other));
    }

    /// The machine's process is gone: its connections are reset, its doors are closed, and what is left over of it connects to nobody. A
    /// process that listens there afterwards is another one.
    pub fn crash(&self, ip: IpAddr) {
        let mut state = self.shared.state.lock();
        state.doors.retain(|address, _| address.ip() != ip);
        let life = state.lives.entry(ip).or_default();
        *life += 1;
        drop(state);
        self.reset(|pipe| pipe.touches(ip));
    }

    /// Whether connecting to the machine is refused.
    pub fn set_refusing(&self, ip: IpAddr, refusing: bool) {
        let mut state = self.shared.state.lock();
        if refusing {
            state.refusing.insert(ip)
        } else {
            state.refusing.remove(&ip)
        };
    }

    fn reset(&self, is_hit: impl Fn(&Pipe) -> bool) {
        for pipe in self.shared.pipes() {
            if is_hit(&pipe) {
                pipe.reset();
            }
        }
    }

    fn wake_all(&self) {
        self.shared.pipes().iter().for_each(|pipe| pipe.wake());
        self.shared.healed.notify_waiters();
    }
}

impl Shared {
    fn pipes(&self) -> Vec<Arc<Pipe>> {
        let state = self.state.lock();
        state.wires.iter().flat_map(|(one, other)| [one.upgrade(), other.upgrade()]).flatten().collect()
    }

    pub(super) fn note_sent(&self, from: IpAddr, to: IpAddr, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (self.trace.load(Ordering::Relaxed), from, to, bytes).hash(&mut hasher);
        self.trace.store(hasher.finish(), Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self, from: IpAddr, to: IpAddr, port: u16) -> bool {
        let cuts = &self.state.lock().cuts;
        !cuts.is_empty() && (cuts.contains(&(from, to, None)) || cuts.contains(&(from, to, Some(port))))
    }

    pub(super) fn latency(&self, from: IpAddr, to: IpAddr, port: u16) -> Duration {
        let state = self.state.lock();
        let range = state.latency.clone();
        let more = state.delays.get(&(from, to, Some(port))).copied().unwrap_or_default();
        drop(state);
        let span = u64::try_from(range.end.saturating_sub(range.start).as_nanos()).unwrap_or(0);
        range.start + Duration::from_nanos(self.entropy.below(span)) + more
    }

    fn free_port(&self) -> u16 {
        let mut state = self.state.lock();
        state.next_port = state.next_port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
        state.next_port
    }

    /// Both ends of a new connection.
    fn connection(self: &Arc<Self>, from: SocketAddr, to: SocketAddr) -> (SimStream, SimStream) {
        let port = to.port();
        let (there, back) = (Pipe::new(from.ip(), to.ip(), port), Pipe::new(to.ip(), from.ip(), port));
        let mut state = self.state.lock();
        state.wires.retain(|(one, other)| one.strong_count() > 0 || other.strong_count() > 0);
        state.wires.push((Arc::downgrade(&there), Arc::downgrade(&back)));
        drop(state);
        let near = SimStream::new(self.clone(), back.clone(), there.clone(), from, to);
        (near, SimStream::new(self.clone(), there, back, to, from))
    }
}

struct Machine {
    shared: Arc<Shared>,
    name: String,
    ip: IpAddr,
    life: u64,
}

impl Machine {
    fn is_dead(&self) -> bool {
        self.shared.state.lock().lives.get(&self.ip).copied().unwrap_or(0) != self.life
    }
}

impl Net for Machine {
    fn bind(&self, address: SocketAddr, _: ListenOptions) -> io::Result<Listener> {
        if self.is_dead() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let port = if address.port() == 0 { self.shared.free_port() } else { address.port() };
        let address = SocketAddr::new(self.ip, port);
        let (door, arrivals) = mpsc::unbounded_channel();
        let mut state = self.shared.state.lock();
        if state.doors.get(&address).is_some_and(|door| !door.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.doors.insert(address, door);
        Ok(Listener::Sim(SimListener { address, arrivals: tokio::sync::Mutex::new(arrivals) }))
    }

    fn connect(&self, address: &NodeAddress) -> BoxFuture<'static, io::Result<Stream>> {
        let (shared, own, target) = (self.shared.clone(), self.ip, self.resolve(&address.host, address.port));
        let is_dead = self.is_dead();
        Box::pin(async move {
            if is_dead {
                std::future::pending::<()>().await;
            }
            let target = target?;
            // A first packet there and one back; without either the kernel goes on trying.
            loop {
                let healed = shared.healed.notified();
                let (ip, port) = (target.ip(), target.port());
                if !shared.is_cut(own, ip, port) && !shared.is_cut(ip, own, port) {
                    break;
                }
                healed.await;
            }
            let there = shared.latency(own, target.ip(), target.port());
            let back = shared.latency(target.ip(), own, target.port());
            crate::host::task::sleep(there + back).await;
            let door = {
                let state = shared.state.lock();
                state.doors.get(&target).filter(|_| !state.refusing.contains(&target.ip())).cloned()
            };
            let door = door.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (near, far) = shared.connection(SocketAddr::new(own, shared.free_port()), target);
            door.send(far).map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Stream::Sim(Box::new(near)))
        })
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let named = || self.shared.state.lock().names.get(host).copied();
        let ip = host.parse().ok().or_else(named);
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("no machine is called {host}"));
        Ok(SocketAddr::new(ip.ok_or_else(unknown)?, port))
    }

    fn host_name(&self) -> String {
        self.name.clone()
    }
}

/// A door of a simulated machine; closed when dropped.
pub struct SimListener {
    address: SocketAddr,
    /// Never contended: one task accepts.
    arrivals: tokio::sync::Mutex<mpsc::UnboundedReceiver<SimStream>>,
}

impl SimListener {
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub async fn accept(&self) -> io::Result<Accepted> {
        match self.arrivals.lock().await.recv().await {
            Some(stream) => {
                let (peer, local) = (stream.peer_addr(), stream.local_addr());
                Ok(Accepted { stream: Detached::Sim(Box::new(stream)), peer, local })
            }
            // The machine crashed; whatever still runs of it hears nothing more.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
