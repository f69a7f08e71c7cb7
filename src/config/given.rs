//! What was given, by whom, and whether it is legal.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::names;
use crate::metadata::config::broker;

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File(PathBuf),
    /// The variable's name.
    Environment(String),
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Environment(variable) => write!(f, "environment variable {variable}"),
            Origin::CommandLine => write!(f, "--set"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenValue {
    pub text: String,
    pub origin: Origin,
}

/// The value that counts for each name that was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    values: BTreeMap<String, GivenValue>,
}

impl Given {
    /// Later ones replace earlier ones.
    pub fn add(&mut self, origin: Origin, values: impl IntoIterator<Item = (String, String)>) {
        for (name, text) in values {
            self.values.insert(name, GivenValue { text, origin: origin.clone() });
        }
    }

    pub fn value(&self, name: &str) -> Option<&GivenValue> {
        self.values.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Names and values alone.
    pub fn properties(&self) -> BTreeMap<String, String> {
        self.values.iter().map(|(name, value)| (name.clone(), value.text.clone())).collect()
    }

    /// Unknown names and values that their setting does not take.
    pub fn problems(&self) -> Vec<String> {
        let problem = |(name, value): (&String, &GivenValue)| {
            let problem = match broker::find_for_listener(name) {
                None => names::unknown(name),
                Some((key, _)) => key.parse(&value.text).err()?,
            };
            Some(format!("{}: {problem}", value.origin))
        };
        self.values.iter().filter_map(problem).collect()
    }
}
