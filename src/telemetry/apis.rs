//! Requests by API: how many, how long, how large, with which outcome.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::Histogram;
use super::names;
use super::page::Page;
use super::shard::{Sharded, add};
use crate::base::{ErrorCode, MonotonicMs};

/// Followers' fetches are counted apart from consumers'; pass this instead of the API key 1.
pub const FETCH_FOLLOWER_SLOT: i16 = 126;

const FETCH: usize = 1;
const UNKNOWN: usize = 127;
const SLOTS: usize = 128;

/// Versions from this one on are counted together; Kafka's highest is 18.
const VERSIONS: usize = 24;

/// Where the successes stand, behind the versions: they are as frequent as requests.
const SUCCESSES: usize = VERSIONS;

/// Error codes from -1 to this one are counted apart.
const ERROR_CODE_MAX: i16 = 160;

/// Error codes begin at -1.
const NONE_SLOT: usize = 1;

const MICROS_PER_MS: f64 = 1e3;
const MICROS_PER_SECOND: f64 = 1e6;

/// Buckets of `barnabas_request_seconds`: from 64 us to 34 s.
const SECONDS_OCTAVES: (u32, u32) = (6, 25);

/// What is known of a request when its answer is ready.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub version: i16,
    /// From the arrival of the whole request to the answer.
    pub nanos: u64,
    pub request_bytes: usize,
    pub response_bytes: usize,
}

/// One API's counters.
pub struct ApiMetrics {
    name: &'static str,
    requests: Sharded<[AtomicU64; VERSIONS + 1]>,
    micros: Histogram,
    request_bytes: Histogram,
    response_bytes: Histogram,
    errors: Box<[AtomicU64]>,
}

impl ApiMetrics {
    fn new(name: &'static str) -> ApiMetrics {
        ApiMetrics {
            name,
            requests: Sharded::default(),
            micros: Histogram::default(),
            request_bytes: Histogram::default(),
            response_bytes: Histogram::default(),
            errors: (-1..=ERROR_CODE_MAX + 1).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a request with its answer. Seven uncontended atomic additions.
    pub fn answered(&self, what: Answered) {
        let version = usize::try_from(what.version).unwrap_or(0).min(VERSIONS - 1);
        if let Some(counter) = self.requests.here().get(version) {
            add(counter, 1);
        }
        self.micros.record(what.nanos / 1000);
        self.request_bytes.record(what.request_bytes as u64);
        self.response_bytes.record(what.response_bytes as u64);
    }

    /// Counts one outcome that an answer carries. An answer may carry many, one for each partition.
    pub fn outcome(&self, code: ErrorCode) {
        self.outcomes(code, 1);
    }

    pub fn outcomes(&self, code: ErrorCode, count: u64) {
        if code.is_none() {
            return add(&self.requests.here()[SUCCESSES], count);
        }
        let slot = usize::try_from(i32::from(code.code()) + 1).unwrap_or(usize::MAX).min(self.errors.len() - 1);
        add(&self.errors[slot], count);
    }

    fn requests_of(&self, version: usize) -> u64 {
        self.requests.sum(|versions| &versions[version])
    }

    fn errors_of(&self, slot: usize) -> u64 {
        let code = self.errors.get(slot).map_or(0, |count| count.load(Ordering::Relaxed));
        if slot == NONE_SLOT { code + self.requests.sum(|counters| &counters[SUCCESSES]) } else { code }
    }

    /// Writes this API, added up with another slot of the same API, under the given name.
    fn write(&self, more: Option<&ApiMetrics>, name: &str, page: &mut Page) {
        for version in 0..VERSIONS {
            let count = self.requests_of(version) + more.map_or(0, |more| more.requests_of(version));
            if count > 0 {
                page.add(&names::REQUESTS, &[name, &version.to_string()], count as f64);
            }
        }
        for slot in 0..self.errors.len() {
            let count = self.errors_of(slot) + more.map_or(0, |more| more.errors_of(slot));
            if count > 0 {
                let code = ErrorCode(i16::try_from(slot).unwrap_or(i16::MAX) - 1);
                page.add(&names::REQUEST_ERRORS, &[name, code.name()], count as f64);
            }
        }
        let micros = self.micros.merged_with(more.map(|more| &more.micros));
        micros.write_summary(page, &names::REQUEST_TOTAL_TIME, &[name], MICROS_PER_MS);
        micros.write_histogram(page, &names::REQUEST_SECONDS, &[name], SECONDS_OCTAVES, MICROS_PER_SECOND);
        let request_bytes = self.request_bytes.merged_with(more.map(|more| &more.request_bytes));
        request_bytes.write_summary(page, &names::REQUEST_BYTES, &[name], 1.0);
        let response_bytes = self.response_bytes.merged_with(more.map(|more| &more.response_bytes));
        response_bytes.write_summary(page, &names::RESPONSE_BYTES, &[name], 1.0);
    }
}

/// All APIs by key, made when first used.
pub(super) struct ApiTable {
    slots: Box<[OnceLock<Box<ApiMetrics>>]>,
}

impl Default for ApiTable {
    fn default() -> ApiTable {
        ApiTable { slots: (0..SLOTS).map(|_| OnceLock::new()).collect() }
    }
}

impl ApiTable {
    pub fn at(&self, key: i16, name: &'static str) -> &ApiMetrics {
        let slot = usize::try_from(key).unwrap_or(UNKNOWN).min(UNKNOWN);
        self.slots[slot].get_or_init(|| Box::new(ApiMetrics::new(if slot == UNKNOWN { "Unknown" } else { name })))
    }

    pub fn upkeep(&self, now: MonotonicMs) {
        for api in self.slots.iter().filter_map(OnceLock::get) {
            api.micros.upkeep(now);
            api.request_bytes.upkeep(now);
            api.response_bytes.upkeep(now);
        }
    }

    pub fn write(&self, page: &mut Page) {
        let follower = self.slots[FETCH_FOLLOWER_SLOT as usize].get().map(|api| &**api);
        let consumer = self.slots[FETCH].get().map(|api| &**api);
        for (slot, api) in self.slots.iter().enumerate() {
            match api.get() {
                Some(api) if slot != FETCH && slot != FETCH_FOLLOWER_SLOT as usize => api.write(None, api.name, page),
                _ => {}
            }
        }
        if let Some(either) = consumer.or(follower) {
            let more = if consumer.is_some() { follower } else { None };
            either.write(more, "Fetch", page);
        }
        if let Some(consumer) = consumer {
            consumer.write(None, "FetchConsumer", page);
        }
        if let Some(follower) = follower {
            follower.write(None, "FetchFollower", page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(table: &ApiTable) -> String {
        let mut page = Page::default();
        table.write(&mut page);
        page.finish()
    }

    fn assert_line(page: &str, line: &str) {
        assert!(page.lines().any(|have| have == line), "{line} is missing in\n{page}");
    }

    fn answered(version: i16) -> Answered {
        Answered { version, nanos: 2_000_000, request_bytes: 100, response_bytes: 1000 }
    }

    #[test]
    fn requests_are_counted_by_api_and_version_with_time_and_size() {
        let table = ApiTable::default();
        let produce = table.at(0, "Produce");
        produce.answered(answered(12));
        produce.answered(answered(12));
        produce.outcomes(ErrorCode::NONE, 3);
        produce.outcome(ErrorCode::MESSAGE_TOO_LARGE);
        let page = page(&table);
        assert_line(&page, "kafka_network_requestmetrics_requests_total{request=\"Produce\",version=\"12\"} 2");
        assert_line(&page, "kafka_network_requestmetrics_errors_total{request=\"Produce\",error=\"NONE\"} 3");
        assert_line(
            &page,
            "kafka_network_requestmetrics_errors_total{request=\"Produce\",error=\"MESSAGE_TOO_LARGE\"} 1",
        );
        assert_line(&page, "kafka_network_requestmetrics_totaltimems_sum{request=\"Produce\"} 4");
        assert_line(&page, "kafka_network_requestmetrics_totaltimems_count{request=\"Produce\"} 2");
        assert_line(&page, "kafka_network_requestmetrics_requestbytes_sum{request=\"Produce\"} 200");
        assert_line(&page, "barnabas_request_seconds_bucket{request=\"Produce\",le=\"+Inf\"} 2");
        assert_line(&page, "barnabas_request_seconds_bucket{request=\"Produce\",le=\"0.001024\"} 0");
        assert_line(&page, "barnabas_request_seconds_bucket{request=\"Produce\",le=\"0.002048\"} 2");
    }

    #[test]
    fn fetches_are_shown_together_and_by_kind() {
        let table = ApiTable::default();
        table.at(1, "Fetch").answered(answered(17));
        table.at(FETCH_FOLLOWER_SLOT, "Fetch").answered(answered(17));
        let page = page(&table);
        assert_line(&page, "kafka_network_requestmetrics_requests_total{request=\"Fetch\",version=\"17\"} 2");
        assert_line(&page, "kafka_network_requestmetrics_requests_total{request=\"FetchConsumer\",version=\"17\"} 1");
        assert_line(&page, "kafka_network_requestmetrics_requests_total{request=\"FetchFollower\",version=\"17\"} 1");
    }

    #[test]
    fn keys_versions_and_codes_out_of_range_have_a_place() {
        let table = ApiTable::default();
        for key in [-5, 127, 1000, i16::MIN, i16::MAX] {
            let api = table.at(key, "whatever");
            api.answered(answered(i16::MIN));
            api.answered(answered(i16::MAX));
            api.outcome(ErrorCode(i16::MAX));
            api.outcome(ErrorCode(i16::MIN));
        }
        assert_line(&page(&table), "kafka_network_requestmetrics_totaltimems_count{request=\"Unknown\"} 10");
    }
}
