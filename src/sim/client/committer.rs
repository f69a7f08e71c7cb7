//! A group's only consumer, which commits where it stands and asks now and then: what it is told is never older than what it was told to
//! be committed.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::group::{commit_request, fetch_request, find_coordinator};
use super::line::Line;
use super::{ASK_MAX, Client};
use crate::base::ErrorCode;
use crate::sim::history::Place;

pub struct Committer {
    pub client: Client,
    pub group: String,
    pub place: Place,
    /// How many commits were acknowledged.
    pub commits: Rc<Cell<u64>>,
}

/// What the consumer knows of its own commits.
#[derive(Default)]
struct Stand {
    committed: i64,
    tried: i64,
    /// Tried and not answered: any of them may come into force at any time.
    unanswered: BTreeSet<i64>,
}

impl Committer {
    pub async fn run(self) {
        let mut stand = Stand::default();
        while !self.client.is_leaving() {
            if let Some(address) = find_coordinator(&self.client, &self.group).await
                && let Some(mut line) = self.client.connect(&address).await
            {
                self.work(&mut line, &mut stand).await;
            }
            self.client.pause(50..300).await;
        }
    }

    async fn work(&self, line: &mut Line, stand: &mut Stand) {
        while !self.client.is_leaving() {
            let goes_on =
                if self.client.dice.one_in(3) { self.ask(line, stand).await } else { self.commit(line, stand).await };
            if goes_on.is_none() {
                return;
            }
            self.client.pause(20..300).await;
        }
    }

    async fn commit(&self, line: &mut Line, stand: &mut Stand) -> Option<()> {
        stand.tried += 1;
        let tried = stand.tried;
        stand.unanswered.insert(tried);
        let request = commit_request(&self.group, &self.place, tried);
        let answer = line.ask(&request, ASK_MAX).await?;
        match ErrorCode(answer.topics[0].partitions[0].error_code) {
            ErrorCode::NONE => {
                self.client.history.note(&format!("{} committed {tried}", self.group));
                self.client.history.count("commits");
                self.commits.set(self.commits.get() + 1);
                stand.unanswered.remove(&tried);
                stand.committed = tried;
                Some(())
            }
            error => {
                self.client.history.note(&format!("{} may not commit: {error}", self.group));
                None
            }
        }
    }

    async fn ask(&self, line: &mut Line, stand: &mut Stand) -> Option<()> {
        let request = fetch_request(&self.group, &self.place);
        let answer = line.ask(&request, ASK_MAX).await?;
        let group = &answer.groups[0];
        if group.error_code != 0 {
            self.client.history.note(&format!("{} may not ask: {}", self.group, ErrorCode(group.error_code)));
            return None;
        }
        let partition = &group.topics[0].partitions[0];
        if partition.error_code != 0 {
            return None;
        }
        let told = partition.committed_offset.max(0);
        self.client.history.note(&format!("{} stands at {told}", self.group));
        if told != stand.committed && !stand.unanswered.remove(&told) {
            self.client.history.violated(format!(
                "committed-offset-went-back: {} was told that {} is committed, and is told {told}",
                self.group, stand.committed
            ));
        }
        stand.committed = told;
        Some(())
    }
}
