//! What the blocks of one object have, from their beginning to their end.

use crate::block::Block;
use crate::guest::sync::lock_ignoring_poison;
use std::sync::Mutex;
use zklock::further::Owner;

/// What each block has, with its owner.
pub(crate) struct Inside<T>(Mutex<Vec<(Owner, Block, T)>>);

impl<T> Default for Inside<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Inside<T> {
    pub(crate) fn keep(&self, owner: Owner, block: Block, value: T) {
        lock_ignoring_poison(&self.0).push((owner, block, value));
    }

    /// Takes what the block has that ends. If the block is not known: the latest of this owner, otherwise of anyone, since another
    /// thread or task may end a generator.
    pub(crate) fn take(&self, owner: Owner, block: Block) -> Option<T> {
        let mut inside = lock_ignoring_poison(&self.0);
        let blocks = inside.iter().enumerate().map(|(index, (_, block, _))| (index, *block));
        let known = block.find(blocks);
        let own = || inside.iter().rposition(|(whose, ..)| *whose == owner);
        known.or_else(own).or(inside.len().checked_sub(1)).map(|last| inside.remove(last).2)
    }
}
