//! Three real nodes: they find one another, serve through any of them, and lose nothing that was acknowledged when one of them is killed or
//! what it has on disk changes; and copies move between them.

mod damaged;
mod forming;
mod losing;
mod moving;
