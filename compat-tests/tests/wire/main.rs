//! Raw sockets with a codec of our own: the traps that other brokers fell into, and hostile bytes.

mod calls;

mod admin;
mod epochs;
mod fetching;
mod groups;
mod hostile;
mod idle;
mod offsets;
mod producing;
mod retention;
mod versions;
