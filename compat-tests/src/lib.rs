//! Drives the real `barnabas` binary with real Kafka clients.
