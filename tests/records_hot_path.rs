//! The way of most batches through `records::validate` takes no memory: a plain batch on a plain topic is only looked at.

#![expect(unsafe_code, reason = "counting allocations takes a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use barnabas::records::{AppendRules, BatchBuilder, Batches, Codec, Validated, single_batch, validate};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that System asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from System with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn a_plain_batch_is_validated_without_an_allocation() {
    let mut builder = BatchBuilder::new(Codec::None);
    for index in 0..1000 {
        builder.push(index, Some(b"key"), Some(&[7; 300]), &[(b"trace", Some(b"1")), (b"trace", None)]);
    }
    let bytes = builder.finish(0, -1);
    let rules = AppendRules::default();
    assert!(allocations_of(|| drop(vec![1u8; 10])) > 0, "allocations are counted");
    let allocations = allocations_of(|| {
        let (header, batch) = single_batch(&bytes, 9).unwrap();
        assert_eq!(validate(batch, &rules, 5000), Ok(Validated::AsReceived(header)));
        assert_eq!(Batches::new(&bytes).flatten().count(), 1);
    });
    assert_eq!(allocations, 0);
}
