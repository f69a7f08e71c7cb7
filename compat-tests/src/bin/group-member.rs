//! One group member: `group-member ADDRESS GROUP TOPIC [key=value]...`. It says on its output what it owns, gives up and reads, and
//! leaves when its input ends.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::{ClientConfig, ClientContext, Message, TopicPartitionList};

const POLL: Duration = Duration::from_millis(50);

struct Says;

impl ClientContext for Says {}

impl ConsumerContext for Says {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(partitions) = rebalance {
            say("revoked", partitions);
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, _: &Rebalance<'_>) {
        if let Ok(assigned) = consumer.assignment() {
            say("assigned", &assigned);
        }
    }
}

fn say(word: &str, partitions: &TopicPartitionList) {
    let numbers: Vec<String> = partitions.elements().iter().map(|p| p.partition().to_string()).collect();
    line(&format!("{word} {}", numbers.join(" ")));
}

fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // A test that is gone is no reason to fail.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: group-member ADDRESS GROUP TOPIC [key=value]...");
    let (address, group, topic) = (next()?, next()?, next()?);
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address).set("broker.address.family", "v4").set("group.id", group);
    config.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "300").set("auto.offset.reset", "earliest");
    // Offsets are stored once a record was told of: this client reads on while it closes.
    config.set("auto.commit.interval.ms", "500").set("enable.auto.offset.store", "false");
    for setting in arguments {
        let (key, value) = setting.split_once('=').ok_or("a setting is key=value")?;
        config.set(key, value);
    }
    let consumer: BaseConsumer<Says> = config.create_with_context(Says)?;
    consumer.subscribe(&[&topic])?;
    let over = input_ends();
    while !over.load(Ordering::Relaxed) {
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                line(&format!("record {} {}", message.partition(), message.offset()));
                // Refused when the partition was just taken away; its next owner reads the record again.
                let _ = consumer.store_offset_from_message(&message);
            }
            Some(Err(error)) => line(&format!("error {:?}", error.rdkafka_error_code())),
            None => {}
        }
    }
    Ok(())
}

/// A flag that is raised when standard input ends.
fn input_ends() -> Arc<AtomicBool> {
    let over = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        raised.store(true, Ordering::Relaxed);
    });
    over
}
