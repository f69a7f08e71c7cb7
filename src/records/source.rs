//! Where a record's bytes come from: a slice that holds all of it, or a stream that is decompressed as it is read. One walk over
//! the fields serves both.

/// Bytes taken from the front of one record.
pub(super) trait Source {
    /// What a run of bytes is: the bytes themselves, or nothing where they are not kept.
    type Span: Copy;

    fn byte(&mut self) -> Option<u8>;

    /// The next `len` bytes; `None` when there are fewer.
    fn span(&mut self, len: usize) -> Option<Self::Span>;

    fn is_empty(&mut self) -> bool;
}

impl<'a> Source for &'a [u8] {
    type Span = &'a [u8];

    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.split_first()?;
        *self = rest;
        Some(first)
    }

    #[inline(always)]
    fn span(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.split_at_checked(len)?;
        *self = tail;
        Some(head)
    }

    #[inline(always)]
    fn is_empty(&mut self) -> bool {
        <[u8]>::is_empty(self)
    }
}
