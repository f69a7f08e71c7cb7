//! Who is on the other side of a connection, in Kafka's `type:name` form.

use std::fmt;
use std::sync::Arc;

/// An authenticated identity. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    kind: Arc<str>,
    name: Arc<str>,
}

impl Principal {
    /// Kafka's principal of a connection that did not authenticate.
    pub fn anonymous() -> Principal {
        Principal::user("ANONYMOUS")
    }

    pub fn user(name: &str) -> Principal {
        Principal { kind: "User".into(), name: name.into() }
    }

    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_read_as_kafkas() {
        assert_eq!(Principal::anonymous().to_string(), "User:ANONYMOUS");
    }
}
