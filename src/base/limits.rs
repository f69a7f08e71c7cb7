//! Every bound that is not a setting, by name. What is full is refused or pushed back, never dropped in silence.

/// The largest first request of a connection, before anything of it could be read: room for a producer that begins without a greeting.
pub const FIRST_FRAME_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Requests of one connection that may be worked on at once; further ones stay in the socket.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 256;

/// Bytes of one connection's requests that may be worked on at once.
pub const REQUEST_BYTES_IN_FLIGHT_MAX: usize = 128 * 1024 * 1024;

/// How much is read from a socket at once, and the size of a fresh read buffer.
pub const READ_CHUNK_BYTES: usize = 64 * 1024;

/// Unknown tagged fields in one structure.
pub const TAGGED_FIELDS_MAX: usize = 1024;

/// Longest legal topic name (Kafka's `Topic.MAX_NAME_LENGTH`).
pub const TOPIC_NAME_CHARS_MAX: usize = 249;

/// Output of decompressing one batch where the topic does not set `max.decompressed.message.bytes` lower.
pub const DECOMPRESSED_BYTES_MAX: usize = 2_147_483_639;

/// Open segment and index files kept by the file cache.
pub const OPEN_FILES_MAX: usize = 4096;

/// Bytes of a log directory that are not synced and checkpointed, and so must be read after a crash. Passed only by what is written
/// in the moment that it takes to sync them.
pub const TAIL_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Topics that have metric series of their own; the rest count together as `__other__`.
pub const TOPIC_SERIES_MAX: usize = 5_000;

/// Lines of one metric on the metrics page; further ones are counted in `barnabas_series_dropped`.
pub const SERIES_PER_METRIC_MAX: usize = 20_000;

/// Characters of a label's value; a longer one is cut and ends in a hash.
pub const LABEL_CHARS_MAX: usize = 255;

/// Distinct (peer, API, reason) that the refusal log tells apart at a time; the rest share one line.
pub const REFUSAL_KEYS_MAX: usize = 1_024;

/// Idempotent producers that one partition remembers; beyond it the longest silent ones are forgotten.
pub const PRODUCERS_PER_PARTITION_MAX: usize = 100_000;

/// Producers' partitions whose first batch that was turned away a connection remembers; what comes behind others is judged by the log alone.
pub const TURNED_AWAY_PER_CONNECTION_MAX: usize = 1_024;
