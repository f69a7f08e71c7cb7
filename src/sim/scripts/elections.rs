//! Scripts about who may be in sync and who may lead.

use std::time::Duration;

use super::scene::{Scene, Stuck};
use crate::host::sim::Crash;
use crate::sim::cluster::PORT;

/// The leader loses the followers' fetches but not the controller, is soon alone in sync, and dies. The others are eligible, because
/// nothing is acknowledged by so few.
pub async fn leader_without_followers(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin().await?;
    scene.cut_data(first, second);
    scene.cut_data(first, third);
    scene.until("the leader is alone in sync", || scene.are_in_sync(&[first])).await?;
    scene.pause(3_000).await;
    scene.cluster.crash(first, Crash::Process).await;
    scene.until("an eligible replica leads", || scene.is_led_by(second) || scene.is_led_by(third)).await?;
    scene.pause(1_000).await;
    scene.cluster.start(first);
    Ok(())
}

/// The second replica is behind and out of the set, but alive and the next in line, when the leader dies.
pub async fn laggard_is_next_in_line(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin().await?;
    scene.cut_data(first, second);
    scene.until("the second is out", || scene.are_in_sync(&[first, third])).await?;
    scene.more_acked(5).await?;
    scene.cluster.crash(first, Crash::Process).await;
    scene.until("another leads", || scene.is_led_by(second) || scene.is_led_by(third)).await?;
    scene.pause(1_000).await;
    scene.cluster.start(first);
    Ok(())
}

/// Without syncs (`flush.policy=os`): the second replica left the set while too few are in sync, and so may lead; then its power fails,
/// and with it goes what it was trusted for.
pub async fn eligible_loses_its_memory(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin().await?;
    scene.cut_data(first, third);
    scene.until("the third is out", || scene.are_in_sync(&[first, second])).await?;
    scene.more_acked(5).await?;
    scene.cut_data(first, second);
    scene.cut_data(second, third);
    let run = scene.broker_epoch(second);
    scene.cluster.crash(second, Crash::PowerLosesAll).await;
    scene.until("the leader is alone in sync", || scene.are_in_sync(&[first])).await?;
    scene.cluster.start(second);
    scene.until("the second is back", || scene.is_back(second, run)).await?;
    scene.cluster.crash(first, Crash::Process).await;
    scene.wait(Duration::from_secs(5), || scene.is_led_by(second)).await;
    scene.pause(1_000).await;
    scene.cluster.start(first);
    Ok(())
}

/// A replica that was away is heard of by the leader but hears little from it. It must not be in sync before it has what was
/// acknowledged without it.
pub async fn joins_while_behind(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin().await?;
    let cluster = &scene.cluster;
    cluster.crash(second, Crash::Process).await;
    scene.until("the second is out", || scene.are_in_sync(&[first, third])).await?;
    scene.more_acked(5).await?;
    let ips = [first, second].map(|node| cluster.machines[node].ip);
    cluster.net.delay_at_door(ips[0], ips[1], PORT, Duration::from_millis(250));
    cluster.start(second);
    scene.until("the second is in sync", || scene.is_in_sync(second)).await?;
    cluster.crash(first, Crash::Process).await;
    scene.until("another leads", || scene.is_led_by(second) || scene.is_led_by(third)).await?;
    scene.pause(1_000).await;
    cluster.start(first);
    Ok(())
}

/// Without syncs (`flush.policy=os`): a leader's word that a replica is in sync is on its way to the controller for so long that the
/// replica loses its power meanwhile, and with it what the word was about.
pub async fn proposal_from_before_a_restart(scene: &Scene) -> Result<(), Stuck> {
    let [first, second, third] = scene.begin_under(2).await?;
    let cluster = &scene.cluster;
    scene.cut_data(first, second);
    scene.until("the second is out", || scene.are_in_sync(&[first, third])).await?;
    scene.more_acked(5).await?;
    // Over the line by which brokers speak with the controller.
    let ips = [first, second, third].map(|node| cluster.machines[node].ip);
    cluster.net.cut_at_door(ips[0], ips[2], PORT + 1);
    cluster.net.heal(ips[0], ips[1]);
    cluster.net.heal(ips[1], ips[0]);
    let is_caught_up = || scene.log_end(second) == scene.log_end(first);
    scene.until("the second has caught up", is_caught_up).await?;
    // Long enough for the leader to see it, and to say so.
    scene.pause(1_000).await;
    scene.cut_data(first, second);
    let run = scene.broker_epoch(second);
    cluster.crash(second, Crash::PowerLosesAll).await;
    cluster.start(second);
    scene.until("the second is back", || scene.is_back(second, run)).await?;
    cluster.net.heal(ips[0], ips[2]);
    scene.wait(Duration::from_secs(2), || scene.is_in_sync(second)).await;
    cluster.crash(first, Crash::Process).await;
    scene.until("another leads", || scene.is_led_by(second) || scene.is_led_by(third)).await?;
    scene.pause(1_000).await;
    cluster.start(first);
    Ok(())
}
