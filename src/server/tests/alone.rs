//! What a node says that does not come to the quorum it is pointed at.

use std::io;

use parking_lot::Mutex;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// The log of everything in this thread.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn capture() -> (Lines, tracing::subscriber::DefaultGuard) {
        let lines = Lines::default();
        let sink = lines.clone();
        let writer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || sink.clone());
        (lines, tracing::subscriber::set_default(tracing_subscriber::registry().with(writer)))
    }

    /// Warnings and errors that say this.
    fn that_say(&self, what: &str) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.0.lock()).into_owned();
        let is_loud = |line: &&str| line.contains(" WARN ") || line.contains(" ERROR ");
        text.lines().filter(is_loud).filter(|line| line.contains(what)).map(str::to_owned).collect()
    }
}

async fn wait(seconds: u64) {
    task::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_cluster_says_that_it_is_kept_out_and_what_to_do() {
    locally(Box::pin(async {
        let (lines, _guard) = Lines::capture();
        let world = World::new(11);
        let first = world.start_with(0, &["controller.quorum.bootstrap.servers=one:9093"]).await;
        let alone = world.start_with(1, &[]).await;
        for node in [&first, &alone] {
            within(20, node.serving()).await.unwrap();
        }
        within(60, alone.stop()).await.unwrap();
        assert_eq!(lines.that_say("kept out"), [""; 0]);
        let ways = ["controller.quorum.bootstrap.servers=one:9093", "controller.quorum.voters=1@one:9093,2@two:9093"];
        for (at, way) in ways.into_iter().enumerate() {
            let pointed = world.start_with(1, &[way]).await;
            wait(30).await;
            let said = lines.that_say("kept out of the one that is configured");
            assert_eq!(said.len(), at + 1, "{way}: {said:?}");
            assert!(said[at].contains("give it an empty log directory"), "{said:?}");
            within(60, pointed.stop()).await.unwrap();
        }
        within(60, first.stop()).await.unwrap();
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_vote_says_once_what_it_waits_for() {
    locally(Box::pin(async {
        let (lines, _guard) = Lines::capture();
        let world = World::new(12);
        let second = world.start_with(1, &["controller.quorum.bootstrap.servers=one:9093"]).await;
        wait(4).await;
        assert_eq!(lines.that_say("waits for the metadata quorum"), [""; 0], "not at once");
        wait(30).await;
        let said = lines.that_say("waits for the metadata quorum");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("no controller answers at one:9093"), "{said:?}");
        let first = world.start_with(0, &["controller.quorum.bootstrap.servers=one:9093"]).await;
        within(20, second.serving()).await.unwrap();
        assert_eq!(lines.that_say("waits for the metadata quorum").len(), 1);
        for node in [second, first] {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_vote_that_the_leader_does_not_reach_says_at_which_address() {
    locally(Box::pin(async {
        let (lines, _guard) = Lines::capture();
        let world = World::new(13);
        let first = world.start_with(0, &["controller.quorum.bootstrap.servers=one:9093"]).await;
        within(20, first.serving()).await.unwrap();
        let wrong = "advertised.listeners=PLAINTEXT://two:9092,CONTROLLER://nowhere:9093";
        let second = world.start_with(1, &["controller.quorum.bootstrap.servers=one:9093", wrong]).await;
        wait(30).await;
        let said = lines.that_say("does not reach this node");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("node 1 leads") && said[0].contains("nowhere:9093"), "{said:?}");
        for node in [second, first] {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}
