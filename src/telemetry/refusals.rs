//! One log line for each refused or closed request, at most one in [`INTERVAL_MS`] for the same peer, API and reason; the next one
//! says how many it stands for. Nobody can fill the disk with log lines, and nothing is dropped in silence.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::names;
use super::page::Page;
use super::shard::add;
use crate::base::MonotonicMs;
use crate::base::limits::REFUSAL_KEYS_MAX;

/// Between two lines about the same peer address, API and reason.
pub const INTERVAL_MS: u64 = 10_000;

/// Characters of what a client says about itself that a line shows.
const TEXT_CHARS_MAX: usize = 80;

/// Characters of the reason: our own words, which may have a client's in them.
const DETAIL_CHARS_MAX: usize = 300;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why something was refused. A closed list: it labels a metric.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The value of the metric's `reason` label.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Reason::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// A frame's length is negative, or it is too short to hold a header.
    InvalidFrame = "invalid_frame",
    /// A frame declares more bytes than are allowed.
    FrameTooLarge = "frame_too_large",
    /// The request header does not parse.
    InvalidHeader = "invalid_header",
    /// No such API, or not on this listener.
    UnknownApi = "unknown_api",
    UnsupportedVersion = "unsupported_version",
    /// The body does not have the shape of its API and version.
    MalformedRequest = "malformed_request",
    /// The request is well-formed and breaks a rule that closes the connection.
    InvalidRequest = "invalid_request",
    /// A record batch was refused.
    InvalidRecords = "invalid_records",
    TooManyConnections = "too_many_connections",
    /// The peer stopped in the middle of a request, or did not read its answers.
    TooSlow = "too_slow",
    Idle = "idle",
    NotAuthenticated = "not_authenticated",
    NotAuthorized = "not_authorized",
    Throttled = "throttled",
    ShuttingDown = "shutting_down",
    /// What this version does not do, such as transactions.
    NotSupported = "not_supported",
    /// A member cannot join its group as it is.
    InvalidGroupMember = "invalid_group_member",
    /// A fault of ours; the line's detail says which.
    Internal = "internal",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known about a refused request; what was not reached yet is `None`.
#[derive(Clone, Copy)]
pub struct Refusal<'a> {
    pub peer: SocketAddr,
    pub listener: &'a str,
    pub client_id: Option<&'a str>,
    pub software_name: Option<&'a str>,
    pub software_version: Option<&'a str>,
    pub api_key: Option<i16>,
    pub api_name: Option<&'static str>,
    pub api_version: Option<i16>,
    pub reason: Reason,
    /// What was got and what was expected.
    pub detail: &'a dyn fmt::Display,
}

/// A line that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// Say it, and that so many like it were held back since the last one.
    Say {
        held_back: u64,
    },
    Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    peer: IpAddr,
    api_key: Option<i16>,
    reason: Reason,
}

#[derive(Clone, Copy)]
struct Held {
    said: MonotonicMs,
    count: u64,
}

/// Decides which refusals are said and which are only counted. Pure.
#[derive(Default)]
struct Ledger {
    by_key: BTreeMap<Key, Held>,
    /// Refusals that found the ledger full.
    others: Option<Held>,
}

impl Ledger {
    fn note(&mut self, key: Key, now: MonotonicMs) -> Line {
        let fresh = Held { said: now, count: 0 };
        if let Some(held) = self.by_key.get_mut(&key) {
            return note_again(held, now);
        }
        if self.by_key.len() < REFUSAL_KEYS_MAX {
            self.by_key.insert(key, fresh);
            return Line::Say { held_back: 0 };
        }
        match &mut self.others {
            Some(held) => note_again(held, now),
            None => {
                self.others = Some(fresh);
                Line::Say { held_back: 0 }
            }
        }
    }

    /// Takes out what is older than the interval, with the counts that were never said.
    fn expire(&mut self, now: MonotonicMs) -> Vec<(Option<Key>, u64)> {
        let is_over = |held: &Held| now.saturating_sub(held.said) >= INTERVAL_MS;
        let mut unsaid = Vec::new();
        self.by_key.retain(|key, held| {
            let over = is_over(held);
            if over && held.count > 0 {
                unsaid.push((Some(*key), held.count));
            }
            !over
        });
        if let Some(held) = self.others.take_if(|held| is_over(held))
            && held.count > 0
        {
            unsaid.push((None, held.count));
        }
        unsaid
    }
}

fn note_again(held: &mut Held, now: MonotonicMs) -> Line {
    if now.saturating_sub(held.said) < INTERVAL_MS {
        held.count += 1;
        return Line::Hold;
    }
    let held_back = held.count;
    *held = Held { said: now, count: 0 };
    Line::Say { held_back }
}

/// The refusal log and its counters.
pub struct Refusals {
    ledger: Mutex<Ledger>,
    counts: Box<[AtomicU64]>,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals { ledger: Mutex::default(), counts: Reason::ALL.iter().map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Refusals {
    /// Counts a refusal, and logs it unless one like it was logged just now.
    pub fn refuse(&self, refusal: &Refusal<'_>, now: MonotonicMs) {
        add(&self.counts[refusal.reason as usize], 1);
        let key = Key { peer: refusal.peer.ip(), api_key: refusal.api_key, reason: refusal.reason };
        let line = self.ledger.lock().note(key, now);
        if let Line::Say { held_back } = line {
            say(refusal, held_back);
        }
    }

    /// Logs how many were held back where no further refusal came to say so.
    pub fn upkeep(&self, now: MonotonicMs) {
        let unsaid = self.ledger.lock().expire(now);
        for (key, count) in unsaid {
            match key {
                Some(key) => tracing::warn!(
                    target: "barnabas::refused",
                    peer = %key.peer,
                    api_key = key.api_key,
                    reason = key.reason.as_str(),
                    suppressed = count,
                    "more like the last one"
                ),
                None => tracing::warn!(
                    target: "barnabas::refused",
                    suppressed = count,
                    "more from peers that the refusal log had no room for"
                ),
            }
        }
    }

    pub fn count(&self, reason: Reason) -> u64 {
        self.counts[reason as usize].load(Ordering::Relaxed)
    }

    pub(super) fn write(&self, page: &mut Page) {
        for reason in Reason::ALL {
            page.add(&names::REFUSED, &[reason.as_str()], self.count(*reason) as f64);
        }
    }
}

fn say(refusal: &Refusal<'_>, held_back: u64) {
    tracing::warn!(
        target: "barnabas::refused",
        peer = %refusal.peer,
        listener = refusal.listener,
        client_id = refusal.client_id.map(cut),
        software_name = refusal.software_name.map(cut),
        software_version = refusal.software_version.map(cut),
        api = refusal.api_name,
        api_key = refusal.api_key,
        api_version = refusal.api_version,
        reason = refusal.reason.as_str(),
        suppressed = (held_back > 0).then_some(held_back),
        "{}",
        shown(&refusal.detail.to_string()),
    );
}

/// A stranger's text in the message itself: cut, and without control characters that could forge another line. (Fields are quoted by the
/// log's own format.)
fn shown(text: &str) -> String {
    cut_to(text, DETAIL_CHARS_MAX).chars().flat_map(visible).collect()
}

fn cut(text: &str) -> String {
    cut_to(text, TEXT_CHARS_MAX)
}

fn cut_to(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn visible(character: char) -> impl Iterator<Item = char> {
    let (escaped, plain) =
        if character.is_control() { (Some(character.escape_default()), None) } else { (None, Some(character)) };
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8, reason: Reason) -> Key {
        Key { peer: IpAddr::from([10, 0, 0, last]), api_key: Some(0), reason }
    }

    #[test]
    fn one_line_an_interval_says_how_many_it_stands_for() {
        let mut ledger = Ledger::default();
        let key = key(1, Reason::FrameTooLarge);
        assert_eq!(ledger.note(key, 0), Line::Say { held_back: 0 });
        for now in 1..=500 {
            assert_eq!(ledger.note(key, now), Line::Hold);
        }
        assert_eq!(ledger.note(key, INTERVAL_MS), Line::Say { held_back: 500 });
        assert_eq!(ledger.note(key, INTERVAL_MS + 1), Line::Hold);
    }

    #[test]
    fn other_peers_and_reasons_have_lines_of_their_own() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.note(key(1, Reason::FrameTooLarge), 0), Line::Say { held_back: 0 });
        assert_eq!(ledger.note(key(2, Reason::FrameTooLarge), 0), Line::Say { held_back: 0 });
        assert_eq!(ledger.note(key(1, Reason::UnknownApi), 0), Line::Say { held_back: 0 });
    }

    #[test]
    fn what_was_held_back_is_said_at_the_end_of_the_interval() {
        let mut ledger = Ledger::default();
        let key = key(1, Reason::Idle);
        ledger.note(key, 0);
        ledger.note(key, 5);
        ledger.note(key, 6);
        assert_eq!(ledger.expire(INTERVAL_MS - 1), vec![]);
        assert_eq!(ledger.expire(INTERVAL_MS), vec![(Some(key), 2)]);
        assert_eq!(ledger.expire(INTERVAL_MS), vec![]);
        assert!(ledger.by_key.is_empty());
    }

    #[test]
    fn strangers_beyond_the_bound_share_one_line() {
        let mut ledger = Ledger::default();
        let peer = |number: usize| Key {
            peer: IpAddr::from(std::net::Ipv6Addr::from(number as u128)),
            api_key: None,
            reason: Reason::InvalidFrame,
        };
        for number in 0..REFUSAL_KEYS_MAX {
            assert_eq!(ledger.note(peer(number), 0), Line::Say { held_back: 0 });
        }
        assert_eq!(ledger.note(peer(REFUSAL_KEYS_MAX), 0), Line::Say { held_back: 0 });
        for number in 1..10 {
            assert_eq!(ledger.note(peer(REFUSAL_KEYS_MAX + number), 0), Line::Hold);
        }
        assert_eq!(ledger.by_key.len(), REFUSAL_KEYS_MAX);
        assert_eq!(ledger.expire(INTERVAL_MS), vec![(None, 9)]);
    }

    #[test]
    fn a_clients_text_cannot_forge_or_flood_a_line() {
        assert_eq!(shown("a\nERROR b\x1b[0m"), "a\\nERROR b\\u{1b}[0m");
        assert_eq!(shown(&"x".repeat(40_000)).len(), DETAIL_CHARS_MAX + 3);
        assert_eq!(cut(&"x".repeat(40_000)).len(), TEXT_CHARS_MAX + 3);
    }

    #[derive(Clone, Default)]
    struct Captured(std::sync::Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_names_the_peer_the_client_the_api_and_the_reason() {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || writer.clone()).finish();
        let refusals = Refusals::default();
        let refusal = Refusal {
            peer: "10.1.2.3:456".parse().unwrap(),
            listener: "PLAINTEXT",
            client_id: Some("bil\nling"),
            software_name: Some("librdkafka"),
            software_version: Some("2.12.1"),
            api_key: Some(0),
            api_name: Some("Produce"),
            api_version: Some(99),
            reason: Reason::UnsupportedVersion,
            detail: &"version 99, expected 3 to 13",
        };
        tracing::subscriber::with_default(subscriber, || {
            refusals.refuse(&refusal, 0);
            refusals.refuse(&refusal, 1);
            refusals.refuse(&refusal, 2);
            refusals.upkeep(INTERVAL_MS);
        });
        let text = String::from_utf8(captured.0.lock().clone()).unwrap();
        let expected = "\u{20}WARN barnabas::refused: version 99, expected 3 to 13 peer=10.1.2.3:456 listener=\"PLAINTEXT\" \
            client_id=\"bil\\nling\" software_name=\"librdkafka\" software_version=\"2.12.1\" api=\"Produce\" api_key=0 \
            api_version=99 reason=\"unsupported_version\"\n\u{20}WARN barnabas::refused: more like the last one \
            peer=10.1.2.3 api_key=0 reason=\"unsupported_version\" suppressed=2\n";
        assert_eq!(text, expected);
        assert_eq!(refusals.count(Reason::UnsupportedVersion), 3);
    }
}
