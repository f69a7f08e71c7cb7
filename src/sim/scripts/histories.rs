//! Scripts about what a log holds: where it is cut, and what of it counts.

use std::time::Duration;

use super::scene::{Scene, Stuck};
use crate::host::sim::Crash;
use crate::sim::cluster::PORT;

/// A record is acknowledged, and its leader dies before it can tell the followers so (KIP-101). One of them leads, the other must not
/// cut what it does not know to be committed: it is the next leader before it could fetch that again.
pub async fn acked_above_followers_high_watermark(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin().await?;
    let cluster = &scene.cluster;
    let ip = |node: usize| cluster.machines[node].ip;
    for follower in [second, third] {
        cluster.net.delay_at_door(ip(first), ip(follower), PORT, Duration::from_millis(150));
    }
    scene.pause(1_000).await;
    scene.more_acked(1).await?;
    scene.cut_data(second, third);
    scene.cut_data(first, second);
    scene.cut_data(first, third);
    let run = scene.broker_epoch(first);
    cluster.crash(first, Crash::Process).await;
    scene.until("the second leads", || scene.is_led_by(second)).await?;
    cluster.start(first);
    scene.until("the first is back", || scene.is_back(first, run)).await?;
    scene.pause(500).await;
    cluster.crash(second, Crash::Process).await;
    scene.until("the third leads", || scene.is_led_by(third)).await?;
    scene.pause(500).await;
    cluster.start(second);
    Ok(())
}

/// A follower's fetch is under way for so long that its leader lost the leadership and has it again, and the follower has cut what the
/// fetch was about, because the leader between did not have it.
pub async fn late_fetch_of_an_earlier_epoch(scene: &Scene) -> Result<(), Stuck> {
    let [between, leader, follower] = scene.begin().await?;
    let cluster = &scene.cluster;
    let ip = |node: usize| cluster.machines[node].ip;
    let all = [between, leader, follower];
    // The second replica leads, and the preferred one follows.
    cluster.stop(between, Duration::from_secs(20)).await;
    scene.until("the second replica leads", || scene.is_led_by(leader)).await?;
    cluster.start(between);
    scene.until("all are in sync", || scene.are_in_sync(&all)).await?;
    scene.more_acked(3).await?;
    // What is written now goes to one follower alone, and its word of it stays on its way.
    scene.cut_data(between, leader);
    scene
        .until("records without the preferred replica", || {
            scene.log_end(follower) >= scene.log_end(between) + 3 && scene.log_end(follower) == scene.log_end(leader)
        })
        .await?;
    cluster.net.cut_at_door(ip(follower), ip(leader), PORT);
    scene.pause(700).await;
    for client in &scene.clients {
        cluster.net.cut(*client, ip(between));
        cluster.net.cut(ip(between), *client);
    }
    scene.elect_preferred().await?;
    scene.until("the preferred replica leads", || scene.leads(between)).await?;
    scene.until("the follower has cut its log", || scene.log_end(follower) == scene.log_end(between)).await?;
    cluster.crash(between, Crash::Process).await;
    scene.until("the second replica leads again", || scene.leads(leader)).await?;
    // Producers send again what has no answer.
    scene.pause(4_000).await;
    let acked = scene.acked();
    cluster.net.cut_at_door(ip(leader), ip(follower), PORT);
    // The other way alone: `heal` is for one direction.
    cluster.net.heal(ip(follower), ip(leader));
    scene.wait(Duration::from_secs(2), || scene.acked() > acked).await;
    cluster.crash(leader, Crash::Process).await;
    cluster.start(between);
    scene.until("the follower leads", || scene.is_led_by(follower)).await?;
    scene.pause(1_000).await;
    cluster.start(leader);
    Ok(())
}

/// Alone in sync, which `min.insync.replicas=1` allows, with a slow device: what is acknowledged is on it all the same.
pub async fn power_cut_after_ack(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin().await?;
    scene.cut_data(first, second);
    scene.cut_data(first, third);
    scene.until("the leader is alone in sync", || scene.are_in_sync(&[first])).await?;
    scene.more_acked(3).await?;
    scene.cluster.set_device(first, 200_000..300_000);
    scene.pause(500).await;
    scene.more_acked(1).await?;
    scene.cluster.crash(first, Crash::PowerLosesAll).await;
    scene.pause(500).await;
    scene.cluster.mend_machine(first);
    scene.cluster.start(first);
    scene.until("it leads again", || scene.leads(first)).await
}
