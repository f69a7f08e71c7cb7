//! The value of `leader.replication.throttled.replicas` and its sister: which replicas count against a replication quota.

/// Replicas that a replication quota slows down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ThrottledReplicas {
    #[default]
    None,
    All,
    /// Pairs of partition index and broker id.
    Some(Vec<(i32, i32)>),
}

impl ThrottledReplicas {
    /// Reads the items of the list; `None` when they are neither `*` nor pairs.
    pub fn parse(items: &[String]) -> Option<ThrottledReplicas> {
        match items {
            [] => Some(ThrottledReplicas::None),
            [all] if all == "*" => Some(ThrottledReplicas::All),
            _ => items.iter().map(|item| pair(item)).collect::<Option<Vec<_>>>().map(ThrottledReplicas::Some),
        }
    }
}

fn pair(item: &str) -> Option<(i32, i32)> {
    let (partition, broker) = item.split_once(':')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(partition) || !digits(broker) {
        return None;
    }
    Some((partition.parse().ok()?, broker.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(items: &[&str]) -> Option<ThrottledReplicas> {
        ThrottledReplicas::parse(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn star_pairs_and_nothing_are_legal() {
        assert_eq!(parse(&[]), Some(ThrottledReplicas::None));
        assert_eq!(parse(&["*"]), Some(ThrottledReplicas::All));
        assert_eq!(parse(&["0:1", "1:2"]), Some(ThrottledReplicas::Some(vec![(0, 1), (1, 2)])));
    }

    #[test]
    fn anything_else_is_not() {
        for bad in [&["0-1"][..], &["0:1", "*"], &["a:1"], &["0:"], &["0:1:2"], &["-1:0"], &[""]] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
