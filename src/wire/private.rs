//! The requests that only our own nodes send to one another. They have keys far above Kafka's, one version, request header 2 and
//! response header 1, and are not in ApiVersions. What their bodies mean is said by those who read and write them; here is only what
//! the frame needs.

use bytes::{BufMut, Bytes, BytesMut};

use super::messages::ResponseBody;
use super::shape::Field;
use super::table::{Api, Listener};

/// All of them have one version so far.
pub const VERSION: i16 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivateApi {
    /// Who is calling: the first request of every connection between nodes.
    PeerHello,
    /// A message of the metadata quorum.
    Raft,
    /// A client's request, handed on to the active controller.
    Forward,
    /// A topic of the broker itself is wanted.
    EnsureTopic,
    /// Copies of a broker are damaged: nobody must count on them.
    GiveUpCopies,
    /// A follower wants to know whether the leader's copy is sound.
    LookAtCopy,
}

impl PrivateApi {
    pub const fn key(self) -> i16 {
        match self {
            PrivateApi::PeerHello => 30_000,
            PrivateApi::Raft => 30_001,
            PrivateApi::Forward => 30_002,
            PrivateApi::EnsureTopic => 30_003,
            PrivateApi::GiveUpCopies => 30_004,
            PrivateApi::LookAtCopy => 30_005,
        }
    }

    pub const fn of_key(key: i16) -> Option<PrivateApi> {
        match key {
            30_000 => Some(PrivateApi::PeerHello),
            30_001 => Some(PrivateApi::Raft),
            30_002 => Some(PrivateApi::Forward),
            30_003 => Some(PrivateApi::EnsureTopic),
            30_004 => Some(PrivateApi::GiveUpCopies),
            30_005 => Some(PrivateApi::LookAtCopy),
            _ => None,
        }
    }
}

/// Bodies are not held against a table: they are JSON, or JSON and a frame that is judged on its own.
static BODY: &[Field] = &[];

const fn api(api: PrivateApi, name: &'static str) -> Api {
    Api {
        key: api.key(),
        name,
        version_min: VERSION,
        version_max: VERSION,
        advertised_min: VERSION,
        flexible_from: 0,
        listener: Listener::Nodes,
        authorization: &[],
        served: true,
        on_controller: false,
        request: BODY,
    }
}

static PEER_HELLO: Api = api(PrivateApi::PeerHello, "PeerHello");
static RAFT: Api = api(PrivateApi::Raft, "Raft");
static FORWARD: Api = api(PrivateApi::Forward, "Forward");
static ENSURE_TOPIC: Api = api(PrivateApi::EnsureTopic, "EnsureTopic");
static GIVE_UP_COPIES: Api = api(PrivateApi::GiveUpCopies, "GiveUpCopies");
static LOOK_AT_COPY: Api = api(PrivateApi::LookAtCopy, "LookAtCopy");

/// The row of a private key.
pub fn lookup(key: i16) -> Option<&'static Api> {
    PrivateApi::of_key(key).map(|api| match api {
        PrivateApi::PeerHello => &PEER_HELLO,
        PrivateApi::Raft => &RAFT,
        PrivateApi::Forward => &FORWARD,
        PrivateApi::EnsureTopic => &ENSURE_TOPIC,
        PrivateApi::GiveUpCopies => &GIVE_UP_COPIES,
        PrivateApi::LookAtCopy => &LOOK_AT_COPY,
    })
}

/// The body of a private answer, as it is.
pub struct RawBody(pub Bytes);

impl ResponseBody for RawBody {
    fn write(&self, _: i16, buffer: &mut BytesMut) -> Result<(), String> {
        buffer.put_slice(&self.0);
        Ok(())
    }
}
