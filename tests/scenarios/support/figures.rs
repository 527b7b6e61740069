//! A server's figures about watches. They are about the whole server, so it must belong to the test.

use ground::Server;

/// How many watches on nodes that were deleted, or on lists of children, the server has fired so far.
pub(crate) fn fired(server: &Server) -> u64 {
    let figures = server.mntr();
    let sum = |kind: &str| -> u64 {
        let name = format!("zk_sum_node_{kind}_watch_count");
        figures.get(&name).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no figure {name}"))
    };
    ["created", "deleted", "changed", "children"].map(sum).iter().sum()
}

/// How many watches there are.
pub(crate) fn watched(server: &Server) -> usize {
    server.mntr()["zk_watch_count"].parse().unwrap()
}
