//! Floor 6: replicated machines that live in internal topics. The partition's leader is the coordinator; its state is a pure
//! machine rebuilt by replaying the partition, and only the folders called `driver` know of tasks, locks and the machine we run on.

pub mod group;
