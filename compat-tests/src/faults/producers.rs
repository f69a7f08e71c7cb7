//! A producer that sends a value every few milliseconds, to each partition in turn, and records each send before it is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext};

use super::classify;
use super::history::{Action, Outcome, Recorder};

const FLUSH_MAX: Duration = Duration::from_secs(120);

struct Reports {
    history: Arc<Recorder>,
    process: u32,
}

impl ClientContext for Reports {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        self.history.note(self.process, Action::Log { text: format!("{facility}: {message}") });
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, value: usize) {
        let value = value as u64;
        let (outcome, offset, error) = match result {
            Ok(message) => (Outcome::Ok, message.offset(), String::new()),
            Err((error, _)) => {
                let code = error.rdkafka_error_code().unwrap_or(Code::Unknown);
                (classify::delivery(code, false), -1, format!("{code:?}"))
            }
        };
        self.history.put(self.process, value, Action::Sent { value, outcome, offset, error });
    }
}

/// Makes a client tell its history more: what `BARNABAS_FAULT_DEBUG` names, as librdkafka's `debug` does.
pub(super) fn debug(config: &mut ClientConfig) {
    if let Ok(what) = std::env::var("BARNABAS_FAULT_DEBUG") {
        config.set("debug", what).set_log_level(RDKafkaLogLevel::Debug);
    }
}

/// How to send.
#[derive(Clone, Debug)]
pub struct Sending {
    pub process: u32,
    pub idempotent: bool,
    pub topic: String,
    pub partitions: i32,
    pub pause: Duration,
}

/// Sends until told to stop, then waits for the reports of all.
pub fn start(
    mut config: ClientConfig,
    sending: Sending,
    history: Arc<Recorder>,
    over: Arc<AtomicBool>,
) -> JoinHandle<()> {
    config.set("enable.idempotence", if sending.idempotent { "true" } else { "false" });
    // Why it begins a new epoch, if it does, is told by what librdkafka calls eos.
    if sending.idempotent {
        config.set("debug", "eos").set_log_level(RDKafkaLogLevel::Debug);
    }
    debug(&mut config);
    let reports = Reports { history: Arc::clone(&history), process: sending.process };
    let producer: ThreadedProducer<Reports> = config.create_with_context(reports).expect("a producer");
    std::thread::spawn(move || {
        let mut count = 0;
        while !over.load(Ordering::Relaxed) {
            send_one(&producer, &sending, &history, count % sending.partitions);
            count = count.wrapping_add(1) & i32::MAX;
            std::thread::sleep(sending.pause);
        }
        producer.flush(FLUSH_MAX).expect("every record gets a report");
    })
}

fn send_one(producer: &ThreadedProducer<Reports>, sending: &Sending, history: &Recorder, partition: i32) {
    let value = history.number();
    let text = value.to_string();
    history.put(sending.process, value, Action::Send { partition, value, idempotent: sending.idempotent });
    let mut record: BaseRecord<'_, str, str, usize> =
        BaseRecord::with_opaque_to(&sending.topic, value as usize).partition(partition).payload(&text);
    loop {
        match producer.send(record) {
            Ok(()) => return,
            Err((KafkaError::MessageProduction(Code::QueueFull), again)) => {
                record = again;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err((error, _)) => {
                // Refused by the client itself: it was never sent.
                let error = error.to_string();
                let sent = Action::Sent { value, outcome: Outcome::Fail, offset: -1, error };
                return history.put(sending.process, value, sent);
            }
        }
    }
}
