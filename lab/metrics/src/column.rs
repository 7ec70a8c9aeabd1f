//! A column of numbers, one per row of a flow. The first blocks stay in memory, the rest goes to a
//! temporary file.
//!
//! Some metrics compare each row with a mean that is known only at the end, so they read the rows a
//! second time.

use std::cell::RefCell;
use std::fs::File;
use std::ops::{Deref, Range};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// Numbers in a block.
const BLOCK: usize = 8_192;
/// Blocks of a column that stay in memory.
const KEPT: usize = 4;
#[cfg(unix)]
const BYTES: usize = size_of::<u64>();

/// Temporary file for the columns of a run. It has no name, so it disappears with the program,
/// however the program ends.
#[derive(Debug, Default)]
#[cfg_attr(not(unix), allow(dead_code))]
pub struct Spool {
    /// `None` if the file could not be created.
    file: OnceLock<Option<File>>,
    used: AtomicU64,
}

impl Spool {
    /// Writes a block and returns its offset; `None` if it cannot be written.
    #[cfg(unix)]
    fn write(&self, block: &[u64]) -> Option<u64> {
        use std::os::unix::fs::FileExt;
        let file = self.file.get_or_init(|| tempfile::tempfile().ok()).as_ref()?;
        let bytes: Vec<u8> = block.iter().flat_map(|number| number.to_le_bytes()).collect();
        let offset = self.used.fetch_add(bytes.len() as u64, std::sync::atomic::Ordering::Relaxed);
        file.write_all_at(&bytes, offset).ok()?;
        Some(offset)
    }

    /// Elsewhere all blocks stay in memory.
    #[cfg(not(unix))]
    fn write(&self, _: &[u64]) -> Option<u64> {
        None
    }

    #[cfg(not(unix))]
    fn read(&self, _: u64) -> Arc<[u64]> {
        unreachable!("no block was written")
    }

    #[cfg(unix)]
    fn read(&self, offset: u64) -> Arc<[u64]> {
        use std::os::unix::fs::FileExt;
        let file = self.file.get().and_then(Option::as_ref).expect("a block was written to it");
        let mut bytes = vec![0; BLOCK * BYTES];
        file.read_exact_at(&mut bytes, offset).expect("the system keeps what it took");
        let (numbers, _) = bytes.as_chunks::<BYTES>();
        numbers.iter().map(|number| u64::from_le_bytes(*number)).collect()
    }
}

/// Numbers by row.
#[derive(Debug)]
pub(super) struct Column {
    spool: Arc<Spool>,
    blocks: Vec<Block>,
    /// Numbers after the last full block.
    tail: Vec<u64>,
    /// Number and content of the block read last. Reads are sequential, so caching one block is
    /// enough.
    last: RefCell<Option<(usize, Arc<[u64]>)>>,
}

#[derive(Debug)]
enum Block {
    Kept(Box<[u64]>),
    Spooled(u64),
}

/// A block whose numbers can be read.
enum Loaded<'a> {
    Kept(&'a [u64]),
    Read(Arc<[u64]>),
}

impl Deref for Loaded<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Kept(numbers) => numbers,
            Self::Read(numbers) => numbers,
        }
    }
}

impl Column {
    pub(super) fn new(spool: &Arc<Spool>) -> Self {
        let (blocks, tail) = (Vec::new(), Vec::new());
        Self { spool: Arc::clone(spool), blocks, tail, last: RefCell::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.tail.len()
    }

    pub(super) fn push(&mut self, number: u64) {
        self.tail.push(number);
        if self.tail.len() < BLOCK {
            return;
        }
        // If the block cannot be written (disk full), keep it in memory.
        let spooled = if self.blocks.len() < KEPT { None } else { self.spool.write(&self.tail) };
        self.blocks.push(match spooled {
            Some(offset) => Block::Spooled(offset),
            None => Block::Kept(self.tail.as_slice().into()),
        });
        self.tail.clear();
    }

    /// The numbers of these rows.
    pub(super) fn iter(&self, rows: Range<usize>) -> impl Iterator<Item = u64> {
        let blocks = rows.start / BLOCK..rows.end.div_ceil(BLOCK);
        blocks.flat_map(move |number| {
            let block = self.load(number);
            let first = number * BLOCK;
            let from = rows.start.saturating_sub(first);
            let to = (rows.end - first).min(block.len());
            (from..to).map(move |index| block[index])
        })
    }

    pub(super) fn sum(&self, rows: Range<usize>) -> u64 {
        self.iter(rows).sum()
    }

    fn load(&self, number: usize) -> Loaded<'_> {
        match self.blocks.get(number) {
            None => Loaded::Kept(&self.tail),
            Some(Block::Kept(numbers)) => Loaded::Kept(numbers),
            Some(Block::Spooled(offset)) => {
                let mut last = self.last.borrow_mut();
                if let Some((_, numbers)) = last.as_ref().filter(|(known, _)| *known == number) {
                    return Loaded::Read(Arc::clone(numbers));
                }
                let numbers = self.spool.read(*offset);
                *last = Some((number, Arc::clone(&numbers)));
                Loaded::Read(numbers)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_column_reads_as_it_was_filled_and_keeps_little_in_memory() {
        let mut column = Column::new(&Arc::default());
        let numbers: Vec<u64> = (0..10 * BLOCK as u64 + 5).map(|index| index * index).collect();
        for number in &numbers {
            column.push(*number);
        }
        assert_eq!(column.len(), numbers.len());
        for rows in [0..numbers.len(), 3..4, BLOCK - 1..7 * BLOCK + 1, 9 * BLOCK..9 * BLOCK] {
            assert!(
                column.iter(rows.clone()).eq(numbers[rows.clone()].iter().copied()),
                "{rows:?}"
            );
        }
        let two: u64 = numbers[5 * BLOCK..][..2].iter().sum();
        assert_eq!(column.sum(5 * BLOCK..5 * BLOCK + 2), two);
        let kept = column.blocks.iter().filter(|block| matches!(block, Block::Kept(_)));
        assert_eq!(kept.count(), KEPT);
    }
}
