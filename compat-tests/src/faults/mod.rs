//! Faults on real processes: clients write and read while nodes are killed, paused and restarted; everything that the clients did and
//! saw goes into a history, and a checker of our own says what in it no correct broker could have done.

pub mod bench;
pub mod checker;
pub mod classify;
pub mod damage;
pub mod disk;
pub mod group;
pub mod history;
pub mod monitor;
pub mod net;
pub mod plan;
pub mod probe;
pub mod producers;
pub mod readers;
pub mod report;

pub use bench::{Bench, Profile};
pub use checker::{Kind, Violation, check};
pub use disk::Disk;
pub use history::{Action, Event, Outcome, Recorder};
pub use net::Net;
pub use plan::{Fault, Plan};
