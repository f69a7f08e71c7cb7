//! What nodes look like from inside.

pub mod logs;
pub mod observer;
