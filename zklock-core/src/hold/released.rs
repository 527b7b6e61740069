//! Whether a hold was released: what it and those who follow it look at.

/// Whether a hold was released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Released {
    No,
    /// It was released together with the grant, or after the grant was lost.
    Yes,
    /// It was released while other holds of the owner went on, or its node was passed on. What happens to that node
    /// later is not this hold's concern.
    Before,
}
