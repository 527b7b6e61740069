//! Planted errors: an answer is altered on its way, to show that the comparison notices.

use ground::wire::codec::Reader;

/// A planted bug in the answers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    Nothing,
    /// Answers about a node with children as if the node did not exist.
    NotEmptyIsNoNode,
    /// Changes of children are not reported.
    NoChildEvents,
    /// Failed writes seem to take no transaction number.
    FailuresUncounted,
    /// The replies to `create2` and `setData` have data one byte longer.
    LongerData,
}

impl Plant {
    pub(crate) const ALL: [(&'static str, Self); 4] = [
        ("not-empty-is-no-node", Self::NotEmptyIsNoNode),
        ("no-child-events", Self::NoChildEvents),
        ("failures-uncounted", Self::FailuresUncounted),
        ("longer-data", Self::LongerData),
    ];

    /// Alters a frame. `false` if the frame must be dropped.
    pub(crate) fn alter(self, frame: &mut [u8]) -> bool {
        let mut reader = Reader(frame);
        let (Some(xid), Some(zxid), Some(error)) = (reader.int(), reader.long(), reader.int()) else {
            return true;
        };
        match self {
            Self::NotEmptyIsNoNode if error == -111 => {
                frame[12..16].copy_from_slice(&(-101_i32).to_be_bytes());
            }
            Self::NoChildEvents if xid == -1 => return reader.int() != Some(4),
            Self::FailuresUncounted if error == -103 => {
                frame[4..12].copy_from_slice(&(zxid - 1).to_be_bytes());
            }
            // Only a stat, as in the answer to `setData`.
            Self::LongerData if error == 0 && xid > 0 && frame.len() == 16 + 68 => frame[16 + 55] += 1,
            _ => {}
        }
        true
    }
}
