//! Reading a partition's log on one node, past every protocol.

use crate::base::Offset;
use crate::replica::Partition;
use crate::sim::client::reader::decode;
use crate::sim::history::FoundLog;

/// A replica as it is now.
pub struct Replica {
    pub high_watermark: Offset,
    pub end: Offset,
    /// The bytes of all batches.
    pub bytes: Vec<u8>,
}

impl Replica {
    /// # Errors
    /// Why the log cannot be read.
    pub fn of(partition: &Partition) -> Result<Replica, String> {
        let view = partition.view().map_err(|error| error.to_string())?;
        let (mut at, mut bytes) = (view.log_start_offset, Vec::new());
        while at < view.log_end_offset {
            let slice = view.read(at, 1 << 20, view.log_end_offset, true).map_err(|error| error.to_string())?;
            let Some(slice) = slice else {
                return Err(format!("nothing can be read at {at} of {}", view.log_end_offset));
            };
            let mut read = vec![0; slice.len];
            slice.file.read_exact_at(&mut read, slice.position).map_err(|error| error.to_string())?;
            let mut batches = crate::records::Batches::new(&read);
            let mut whole = 0;
            for batch in &mut batches {
                let (header, batch) = batch.map_err(|error| error.to_string())?;
                at = header.next_offset();
                whole += batch.len();
            }
            bytes.extend_from_slice(&read[..whole]);
        }
        Ok(Replica { high_watermark: partition.high_watermark(), end: view.log_end_offset, bytes })
    }

    pub fn records(&self) -> FoundLog {
        decode(&self.bytes)
    }
}
