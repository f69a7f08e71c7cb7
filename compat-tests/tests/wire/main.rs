//! Raw sockets.
