//! Reads typed values out of the properties and notes which names were read: what nobody reads has no effect.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::config::layers::DEFAULTS_ONLY;
use crate::metadata::config::{BrokerLayers, Value, broker};

pub struct Reader<'a> {
    properties: &'a BTreeMap<String, String>,
    used: RefCell<BTreeSet<&'static str>>,
    problems: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    pub fn new(properties: &'a BTreeMap<String, String>) -> Reader<'a> {
        Reader { properties, used: RefCell::default(), problems: RefCell::default() }
    }

    /// Names that were read, and all that was found wrong.
    pub fn finish(self) -> (BTreeSet<&'static str>, Vec<String>) {
        (self.used.into_inner(), self.problems.into_inner())
    }

    pub fn problem(&self, problem: impl Into<String>) {
        self.problems.borrow_mut().push(problem.into());
    }

    /// Whether somebody set it, rather than the default counting.
    pub fn is_set(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    fn value(&self, name: &'static str) -> Option<Value> {
        self.used.borrow_mut().insert(name);
        if broker::find(name).is_none() {
            self.problem(format!("{name} is read, but no setting"));
        }
        broker::effective_value(name, &BrokerLayers { fixed: self.properties, ..DEFAULTS_ONLY })
    }

    /// The number, in the type that it is used in.
    pub fn number<T: TryFrom<i64> + Default>(&self, name: &'static str) -> T {
        let Some(Value::Integer(number)) = self.value(name) else { return T::default() };
        T::try_from(number).unwrap_or_else(|_| {
            self.problem(format!("Invalid value {number} for configuration {name}: out of range"));
            T::default()
        })
    }

    /// The number, or `None` for a null or a negative one.
    pub fn limit<T: TryFrom<i64>>(&self, name: &'static str) -> Option<T> {
        match self.value(name) {
            Some(Value::Integer(number)) => T::try_from(number).ok().filter(|_| number >= 0),
            _ => None,
        }
    }

    pub fn double(&self, name: &'static str) -> f64 {
        match self.value(name) {
            Some(Value::Double(number)) => number,
            _ => 0.0,
        }
    }

    pub fn flag(&self, name: &'static str) -> bool {
        self.value(name) == Some(Value::Boolean(true))
    }

    /// The text; "" for null.
    pub fn text(&self, name: &'static str) -> String {
        self.optional_text(name).unwrap_or_default()
    }

    pub fn optional_text(&self, name: &'static str) -> Option<String> {
        self.value(name).map(|value| value.to_string())
    }

    /// The items; none for null.
    pub fn list(&self, name: &'static str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(items)) => items,
            _ => Vec::new(),
        }
    }
}
