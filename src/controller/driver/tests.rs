//! Facts about the driver over a quorum of one voter.
