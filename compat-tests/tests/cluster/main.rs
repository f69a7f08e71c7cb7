//! Three real nodes: they find one another, serve through any of them, and lose nothing that was acknowledged when one of them is killed or
//! what it has on disk changes.

mod damaged;
mod forming;
mod losing;
