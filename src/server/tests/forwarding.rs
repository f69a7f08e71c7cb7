//! Requests that go on to the active controller while connections break.

use super::*;
use crate::base::ErrorCode;

/// The number of a machine, which is its node's id.
fn number(at: usize) -> i32 {
    i32::try_from(at).unwrap() + 1
}

#[tokio::test(start_paused = true)]
async fn whoever_made_a_topic_is_not_told_that_it_exists_already() {
    locally(Box::pin(async {
        let world = World::new(4);
        let nodes = [world.start(0).await, world.start(1).await, world.start(2).await];
        for node in &nodes {
            within(20, node.serving()).await.unwrap();
        }
        let controller = nodes.iter().position(|node| node.broker().is_active_controller()).unwrap();
        let asked = (controller + 1) % 3;
        let address = |at: usize| ip(u8::try_from(number(at)).unwrap());
        let wanted = topic("once");
        let client = async { within(60, world.ask(NAMES[asked], &wanted)).await };
        let fault = async {
            // The first request goes through and its answer does not.
            world.net.cut(address(controller), address(asked));
            let mut images = nodes[controller].broker().controller.quorum().watch();
            within(30, images.wait_for(|image| image.topic("once").is_some())).await.unwrap();
            world.net.break_between(address(controller), address(asked));
            world.net.heal_all();
        };
        let (answer, ()) = tokio::join!(client, fault);
        let code = ErrorCode(answer.topics[0].error_code);
        assert_eq!(code, ErrorCode::REQUEST_TIMED_OUT, "{:?}", answer.topics[0].error_message);
        // What was certainly not carried out is tried again.
        let again = within(60, world.ask(NAMES[asked], &topic("twice"))).await;
        assert_eq!(again.topics[0].error_code, 0);
        for node in nodes {
            within(60, node.stop()).await.unwrap();
        }
    }))
    .await;
}
