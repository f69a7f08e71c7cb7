//! The randomness seam.

use uuid::Uuid;

pub trait Entropy: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);

    /// A random (version 4) UUID that is never one of Kafka's reserved ids (all zero, or zero but for the last bit) and
    /// whose base64 text does not begin with a dash, which command lines would take for an option.
    fn uuid(&self) -> Uuid {
        loop {
            let mut bytes = [0u8; 16];
            self.fill(&mut bytes);
            let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
            // 62 is '-' in URL-safe base64: the first six bits.
            if id.as_u128() > 1 && bytes[0] >> 2 != 62 {
                return id;
            }
        }
    }
}
