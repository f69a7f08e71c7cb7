//! Feature levels: what this binary supports, what a new cluster begins with, and how levels may move.

use super::{Decision, Refusal};
use crate::base::ErrorCode;
use crate::metadata::{BrokerRegistration, FeatureRange, Image, MetadataRecord};

/// A feature that this binary knows, with the levels it can run at. Level 0 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedFeature {
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
}

/// The features of Kafka 4.4 by name; a new cluster begins with the highest level of each.
pub const SUPPORTED_FEATURES: &[SupportedFeature] = &[
    SupportedFeature { name: ELIGIBLE_LEADER_REPLICAS, min: 0, max: 1 },
    SupportedFeature { name: "group.version", min: 0, max: 1 },
    SupportedFeature { name: "kraft.version", min: 0, max: 1 },
    SupportedFeature { name: METADATA_VERSION, min: 7, max: 33 },
    SupportedFeature { name: "share.version", min: 0, max: 2 },
    SupportedFeature { name: "streams.version", min: 0, max: 1 },
    SupportedFeature { name: "transaction.version", min: 0, max: 2 },
];

const METADATA_VERSION: &str = "metadata.version";
pub(super) const ELIGIBLE_LEADER_REPLICAS: &str = "eligible.leader.replicas.version";

/// What a broker that runs this binary says of itself when it registers.
pub fn supported_features() -> Vec<FeatureRange> {
    let range =
        |feature: &SupportedFeature| FeatureRange { name: feature.name.to_owned(), min: feature.min, max: feature.max };
    SUPPORTED_FEATURES.iter().map(range).collect()
}

/// Why a broker cannot work in this cluster: each feature that is on must be in its range.
pub fn reason_against_broker(image: &Image, broker: &BrokerRegistration) -> Option<String> {
    image.features().find_map(|(name, level)| {
        let (min, max) = range_of(broker, name);
        (level < min || level > max).then(|| {
            format!(
                "Unable to register because the broker does not support finalized version {level} of {name}. The broker wants \
                 a version between {min} and {max}, inclusive."
            )
        })
    })
}

/// The levels that a broker can run at; one that does not know a feature can run at level 0.
fn range_of(broker: &BrokerRegistration, name: &str) -> (i16, i16) {
    let known = broker.features.iter().find(|feature| feature.name == name);
    known.map_or((0, 0), |feature| (feature.min, feature.max))
}

/// Why the registered brokers, fenced ones too, are not all ready for a level. A registration from before brokers said what they
/// support is taken for one of this binary.
fn broker_against(image: &Image, name: &str, level: i16) -> Option<String> {
    image.brokers().filter(|broker| !broker.features.is_empty()).find_map(|broker| {
        let (min, max) = range_of(broker, name);
        if level >= min && level <= max {
            return None;
        }
        Some(match (min, max) {
            (0, 0) => format!("Broker {} does not support this feature.", broker.id),
            _ => format!("Broker {} only supports versions {min}-{max}", broker.id),
        })
    })
}

/// The finalized levels of a new cluster.
pub fn initial_features() -> impl Iterator<Item = MetadataRecord> {
    SUPPORTED_FEATURES
        .iter()
        .map(|feature| MetadataRecord::Feature { name: feature.name.to_owned(), level: feature.max })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Upgrade,
    /// Safe or not: the image here loses nothing by a lower level.
    Downgrade,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureUpdate {
    pub name: String,
    pub level: i16,
    pub direction: Direction,
}

/// Moves all the levels or none. The caller drops the records when the client only wants to know.
pub fn update_features(image: &Image, updates: &[FeatureUpdate]) -> Decision<Result<(), Refusal>> {
    if let Some(reason) = updates.iter().find_map(|update| reason_against(image, update)) {
        let message = format!("The update failed for all features since the following feature had an error: {reason}");
        return Decision::unchanged(Err(Refusal::new(ErrorCode::INVALID_UPDATE_VERSION, message)));
    }
    let changed = updates.iter().filter(|update| image.feature(&update.name) != update.level);
    let records = changed.map(|update| MetadataRecord::Feature { name: update.name.clone(), level: update.level });
    Decision { records: records.collect(), reply: Ok(()) }
}

fn reason_against(image: &Image, update: &FeatureUpdate) -> Option<String> {
    let wrong =
        |why: String| Some(format!("Invalid update version {} for feature {}. {why}", update.level, update.name));
    let Some(feature) = SUPPORTED_FEATURES.iter().find(|feature| feature.name == update.name) else {
        return wrong("This controller does not support this feature.".to_owned());
    };
    if update.level < feature.min || update.level > feature.max {
        return wrong(format!("This controller only supports versions {}-{}", feature.min, feature.max));
    }
    if let Some(why) = broker_against(image, &update.name, update.level) {
        return wrong(why);
    }
    let lower = update.level < image.feature(&update.name);
    if lower && update.direction == Direction::Upgrade {
        return wrong("Can't downgrade the version of this feature without saying that it is a downgrade.".to_owned());
    }
    if lower && feature.name == METADATA_VERSION {
        return wrong("The metadata version of this cluster cannot be lowered.".to_owned());
    }
    None
}
