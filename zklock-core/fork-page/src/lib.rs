//! A number in a page that the kernel clears in every forked child, however it was forked. To read it takes a hundredth of the time
//! of a `getpid`.
//!
//! It is a crate of its own because it needs unsafe code, which the rest of the core forbids.

#![allow(unsafe_code, reason = "no safe crate maps such a page")]

use std::sync::atomic::AtomicU32;

/// Maps a page, which is never unmapped, and returns its first number, which is zero. It returns `None` if the kernel has no such pages
/// (before Linux 4.14, or another system), or no memory.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::Ordering;
///
/// if let Some(number) = zklock_fork_page::map() {
///     number.store(7, Ordering::Relaxed);
///     // It is still 7 here, and 0 in a child that is forked now.
///     assert_eq!(number.load(Ordering::Relaxed), 7);
/// }
/// ```
#[cfg(all(target_os = "linux", not(miri)))]
pub fn map() -> Option<&'static AtomicU32> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    // The kernel rounds the size up to a page.
    let size = size_of::<AtomicU32>();
    let (protection, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the kernel chooses the address, so it is not anyone else's memory.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), size, protection, private) }.ok()?;
    // SAFETY: the page was just mapped, and is only ours.
    unsafe { madvise(page, size, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the page is zero, which is a valid number, it is aligned, and it is never unmapped. The kernel only changes it when it
    // creates another process, before that runs.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

/// There are no such pages.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn map() -> Option<&'static AtomicU32> {
    None
}
