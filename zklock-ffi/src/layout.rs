//! Layouts on which C and the library must agree, byte for byte. tests/c/header checks the header
//! in the same way.

use crate::contenders::zklock_contender;
use crate::event::zklock_event;
use crate::guarded::zklock_write;
use crate::record::zklock_record;
use crate::stats::{zklock_bucket, zklock_lock_stats, zklock_stats};
use std::mem::offset_of;

const _: () = {
    assert!(size_of::<zklock_write>() == 48 && align_of::<zklock_write>() == 8);
    assert!(offset_of!(zklock_write, path) == 8 && offset_of!(zklock_write, data) == 16);
    assert!(offset_of!(zklock_write, length) == 24 && offset_of!(zklock_write, reserved) == 32);
    assert!(size_of::<zklock_contender>() == 72 && align_of::<zklock_contender>() == 8);
    assert!(offset_of!(zklock_contender, size) == 0 && offset_of!(zklock_contender, session) == 32);
    assert!(offset_of!(zklock_contender, node) == 56 && offset_of!(zklock_contender, role) == 64);
    assert!(offset_of!(zklock_contender, holds) == 68);
    assert!(size_of::<zklock_event>() == 64 && align_of::<zklock_event>() == 8);
    assert!(offset_of!(zklock_event, context) == 0 && offset_of!(zklock_event, call) == 8);
    assert!(offset_of!(zklock_event, hold) == 16 && offset_of!(zklock_event, observer) == 24);
    assert!(size_of::<zklock_bucket>() == 16 && align_of::<zklock_bucket>() == 8);
    assert!(size_of::<zklock_stats>() == 256 && align_of::<zklock_stats>() == 8);
    assert!(offset_of!(zklock_stats, losses_by) == 96 && offset_of!(zklock_stats, reserved) == 224);
    assert!(size_of::<zklock_lock_stats>() == 256 && align_of::<zklock_lock_stats>() == 8);
    assert!(offset_of!(zklock_lock_stats, losses_by) == 64 && offset_of!(zklock_lock_stats, reserved) == 192);
    assert!(offset_of!(zklock_bucket, bound) == 0 && offset_of!(zklock_bucket, count) == 8);
    assert!(size_of::<zklock_record>() == 1104 && align_of::<zklock_record>() == 8);
    assert!(offset_of!(zklock_record, token) == 32 && offset_of!(zklock_record, outcome) == 40);
    assert!(offset_of!(zklock_record, identity) == 44 && offset_of!(zklock_record, failure) == 556);
    assert!(offset_of!(zklock_record, reserved) == 1068);
    assert!(offset_of!(zklock_event, kind) == 32 && offset_of!(zklock_event, reserved) == 36);
};
