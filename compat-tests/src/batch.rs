//! Record batches (magic 2, uncompressed) made and read by hand, for raw Produce and Fetch requests.

/// Key and value of a record; either may be null.
pub type KeyValue = (Option<Vec<u8>>, Option<Vec<u8>>);

/// What a batch is made of; `bytes` gives it in Kafka's format.
#[derive(Clone, Debug)]
pub struct Batch {
    pub attributes: i16,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub base_timestamp: i64,
    pub records: Vec<KeyValue>,
    /// What the header says instead of the true number of records.
    pub claimed_count: Option<i32>,
    pub magic: i8,
}

impl Batch {
    /// A batch without a producer id that holds these values, without keys, stamped now.
    pub fn of<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Batch {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        Batch {
            attributes: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            base_timestamp: i64::try_from(now.as_millis()).expect("milliseconds fit"),
            records: values.into_iter().map(|v| (None, Some(v.as_ref().to_vec()))).collect(),
            claimed_count: None,
            magic: 2,
        }
    }

    pub fn from_producer(mut self, id: i64, epoch: i16, sequence: i32) -> Batch {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, sequence);
        self
    }

    pub fn at(mut self, timestamp: i64) -> Batch {
        self.base_timestamp = timestamp;
        self
    }

    /// The batch with a right CRC and base offset 0.
    pub fn bytes(&self) -> Vec<u8> {
        let count = i32::try_from(self.records.len()).expect("few records");
        let mut summed = Vec::new();
        summed.extend(self.attributes.to_be_bytes());
        summed.extend((count - 1).to_be_bytes());
        summed.extend(self.base_timestamp.to_be_bytes());
        summed.extend(self.base_timestamp.to_be_bytes());
        summed.extend(self.producer_id.to_be_bytes());
        summed.extend(self.producer_epoch.to_be_bytes());
        summed.extend(self.base_sequence.to_be_bytes());
        summed.extend(self.claimed_count.unwrap_or(count).to_be_bytes());
        for (index, (key, value)) in self.records.iter().enumerate() {
            summed.extend(record(index, key.as_deref(), value.as_deref()));
        }
        let mut batch = Vec::new();
        batch.extend(0i64.to_be_bytes());
        batch.extend(i32::try_from(summed.len() + 9).expect("under 2 GiB").to_be_bytes());
        batch.extend((-1i32).to_be_bytes());
        batch.extend(self.magic.to_be_bytes());
        batch.extend(crc32c::crc32c(&summed).to_be_bytes());
        batch.extend(summed);
        batch
    }
}

fn record(index: usize, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![0]; // attributes
    varint(&mut body, 0); // timestamp delta
    varint(&mut body, i64::try_from(index).expect("few records"));
    for part in [key, value] {
        varint(&mut body, part.map_or(-1, |p| i64::try_from(p.len()).expect("small")));
        body.extend(part.unwrap_or_default());
    }
    varint(&mut body, 0); // headers
    let mut out = Vec::new();
    varint(&mut out, i64::try_from(body.len()).expect("small"));
    out.extend(body);
    out
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        out.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

/// The header fields of a stored batch that the broker stamps or keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub base_offset: i64,
    pub last_offset: i64,
    pub leader_epoch: i32,
    pub size: usize,
    pub crc: u32,
    pub crc_is_right: bool,
}

/// The whole batches at the start of fetched record bytes; a cut one at the end is left out.
pub fn stored(mut bytes: &[u8]) -> Vec<Stored> {
    let mut found = Vec::new();
    while bytes.len() >= 61 {
        let size = 12 + usize::try_from(i32_at(bytes, 8)).expect("a batch length");
        if bytes.len() < size {
            break;
        }
        let base_offset = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        found.push(Stored {
            base_offset,
            last_offset: base_offset + i64::from(i32_at(bytes, 23)),
            leader_epoch: i32_at(bytes, 12),
            size,
            crc: i32_at(bytes, 17) as u32,
            crc_is_right: crc32c::crc32c(&bytes[21..size]) == i32_at(bytes, 17) as u32,
        });
        bytes = &bytes[size..];
    }
    found
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
