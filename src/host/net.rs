//! The network seam. The names that the rest of the broker uses; a simulated build swaps what stands behind them.

pub use tokio::net::{TcpListener, TcpSocket, TcpStream};
