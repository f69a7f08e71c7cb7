//! CRC-32C (Castagnoli) of a batch, over everything behind the CRC field. Base offset and leader epoch stand in front of it,
//! which is why a broker can stamp them into a batch without touching the rest.

use super::header::at;

/// Whether the CRC in the header is that of the bytes. `batch` is exactly one batch; one too short to hold a CRC has none.
#[inline]
pub fn crc_is_valid(batch: &[u8]) -> bool {
    let Some(stored) = batch.get(at::CRC..).and_then(|rest| rest.first_chunk::<4>()) else {
        return false;
    };
    crc_of(batch) == Some(u32::from_be_bytes(*stored))
}

/// The CRC that belongs into `batch`'s header; `None` when the batch is too short to have one.
#[inline]
pub fn crc_of(batch: &[u8]) -> Option<u32> {
    batch.get(at::ATTRIBUTES..).map(crc_fast::crc32_iscsi)
}

/// Writes the right CRC into `batch`'s header and returns it; `None`, and nothing written, when the batch is too short.
pub fn stamp_crc(batch: &mut [u8]) -> Option<u32> {
    let crc = crc_of(batch)?;
    batch.get_mut(at::CRC..at::ATTRIBUTES)?.copy_from_slice(&crc.to_be_bytes());
    Some(crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_castagnoli() {
        let mut batch = vec![0u8; at::ATTRIBUTES];
        batch.extend_from_slice(b"123456789");
        assert_eq!(crc_of(&batch), Some(0xe306_9283));
        assert!(!crc_is_valid(&batch));
        assert_eq!(stamp_crc(&mut batch), Some(0xe306_9283));
        assert!(crc_is_valid(&batch));
    }

    #[test]
    fn bytes_in_front_of_the_attributes_do_not_count() {
        let mut batch = vec![7u8; 80];
        stamp_crc(&mut batch);
        batch[..at::CRC].fill(0xff);
        assert!(crc_is_valid(&batch));
        batch[at::ATTRIBUTES] ^= 1;
        assert!(!crc_is_valid(&batch));
    }

    #[test]
    fn too_short_for_a_crc_is_invalid() {
        for len in 0..at::ATTRIBUTES {
            assert!(!crc_is_valid(&vec![0u8; len]));
            assert_eq!(stamp_crc(&mut vec![0u8; len]), None);
        }
    }
}
