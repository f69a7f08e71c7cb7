//! What an error proves. A wrong `Fail` makes a false alarm, a wrong `Ok` hides a bug; everything that is not proven is `Info`.

use rdkafka::types::RDKafkaErrorCode as Code;

use super::history::Outcome;

/// A delivery report's error. Errors by which a broker says that it did not append prove that only when there was no earlier attempt
/// whose answer was lost, so only for a producer that sends once.
pub fn delivery(code: Code, sends_once: bool) -> Outcome {
    match code {
        // Refused by the client itself, or for what the record is: no attempt can have gone through.
        Code::MessageSizeTooLarge | Code::InvalidRecord | Code::InvalidRequiredAcks => Outcome::Fail,
        Code::NotEnoughReplicas | Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed if sends_once => {
            Outcome::Fail
        }
        _ => Outcome::Info,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_proves_no_append_is_a_failure() {
        assert_eq!(delivery(Code::MessageSizeTooLarge, false), Outcome::Fail);
        assert_eq!(delivery(Code::NotEnoughReplicas, true), Outcome::Fail);
        for unsure in [
            Code::NotEnoughReplicas,
            Code::NotEnoughReplicasAfterAppend,
            Code::MessageTimedOut,
            Code::NotLeaderForPartition,
            Code::BrokerTransportFailure,
            Code::PurgeInflight,
            Code::RequestTimedOut,
        ] {
            assert_eq!(delivery(unsure, false), Outcome::Info, "{unsure:?}");
        }
        assert_eq!(delivery(Code::NotEnoughReplicasAfterAppend, true), Outcome::Info);
    }
}
