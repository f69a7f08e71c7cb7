//! A gate that opens once: clients wait before it until this node knows what it leads.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

pub struct Gate {
    /// For those who only look.
    is_open: AtomicBool,
    opening: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { is_open: AtomicBool::new(false), opening: watch::Sender::new(false) }
    }
}

impl Gate {
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.opening.send_replace(true);
    }

    pub async fn opened(&self) {
        // The sender lives as long as the gate.
        let _ = self.opening.subscribe().wait_for(|open| *open).await;
    }
}
