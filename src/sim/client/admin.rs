//! An administrator who makes topics. What was acknowledged is never forgotten.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Client, text};
use crate::base::ErrorCode;
use crate::wire::messages::CreateTopicsRequest;
use crate::wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};

pub struct Admin {
    pub client: Client,
    /// Topics whose creation was acknowledged.
    pub made: Rc<RefCell<Vec<String>>>,
    pub topics: u32,
}

impl Admin {
    pub async fn run(self) {
        for number in 0..self.topics {
            self.client.pause(500..4_000).await;
            self.make(&format!("extra-{number}"), 1, &[]).await;
            if self.client.is_leaving() {
                return;
            }
        }
    }

    /// Makes a topic, however long it takes.
    pub async fn make(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        while !self.client.is_leaving() {
            if self.try_to_make(name, partitions, configs).await {
                self.client.history.count("topics made");
                self.client.history.note(&format!("topic {name} was made"));
                self.made.borrow_mut().push(name.to_owned());
                return;
            }
            self.client.pause(100..500).await;
        }
    }

    async fn try_to_make(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> bool {
        let configs = configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value))));
        let topic = CreatableTopic::default()
            .with_configs(configs.collect())
            .with_name(text(name).into())
            .with_num_partitions(partitions)
            .with_replication_factor(3);
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(3_000);
        let Some(answer) = self.client.ask_anyone(&request).await else { return false };
        match ErrorCode(answer.topics[0].error_code) {
            // An earlier try got through.
            ErrorCode::NONE | ErrorCode::TOPIC_ALREADY_EXISTS => true,
            error => {
                self.client.history.note(&format!("topic {name} was refused with {error}"));
                false
            }
        }
    }
}
