//! Three real nodes: they find one another, serve through any of them, and lose nothing that was acknowledged when one of them is killed.

mod forming;
mod losing;
