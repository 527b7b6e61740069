//! Bugs that show when tries are answered from memory.

use super::{BUSY, MEMORY, Seed, edit, seed};

pub(super) const SEEDS: &[Seed] = &[
    seed("tries: the watch changes nothing", &[edit(MEMORY, "self.is_told = true;", "")]),
    seed(
        "tries: remembered over a reconnection",
        &[edit(MEMORY, "&& lease.is_connected_since(self.since)", "")],
    ),
    seed(
        "tries: a server that does not tell is believed",
        &[edit(MEMORY, "self.since + lease.heartbeat()", "self.since + lease.timeout()")],
    ),
    seed(
        "tries: a watch that was not left",
        &[edit(BUSY, "&& watched == [Outcome::Done]", "&& !watched.is_empty()")],
    ),
    seed(
        "tries: watches one that is not in the way",
        &[edit(
            BUSY,
            "oldest_ahead(children, self.queue.slots[0].name(), claim).filter(is_others)",
            "children.iter().map(String::as_str).filter(is_others).min_by_key(|name| Name::parse(name).map(|name| name.sequence.to_string()))",
        )],
    ),
];
