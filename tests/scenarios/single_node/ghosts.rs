//! A server that has lost a deletion which the others have: it still shows the node and its former owner, although somebody
//! else has the lock by now.
//!
//! The server is a real one. A proxy changes its answers into those of such a server.

use crate::support::queue::held;
use crate::support::{SOON, client, operator, proxied_client, settled, soon};
use ground::{Action, Hook, Kind, Proxy, Trigger, until};
use std::sync::{Arc, Mutex};
use zklock::{Hold, HoldState};

/// The length of a reply's header: its number, a transaction, and an error.
const HEAD: usize = 16;
/// More lookups than any client makes.
const LOOKS: usize = 8;
/// The node, and its companion.
const NODES: [&str; 2] = ["/lock", "-of-lock"];

/// The answers of the server when it is asked whether the two nodes exist.
#[derive(Clone, Default)]
struct Ghosts([Arc<Mutex<Option<Vec<u8>>>>; 2]);

impl Ghosts {
    /// Records the next answer about each node.
    fn see(&self, proxy: &Proxy) -> Vec<Hook> {
        self.change(proxy, 1, |seen, body| {
            if body.len() > HEAD {
                *seen = Some(body[HEAD..].to_vec());
            }
        })
    }

    /// Repeats the recorded answers from now on.
    fn appear(&self, proxy: &Proxy) -> Vec<Hook> {
        self.change(proxy, LOOKS, |seen, body| {
            if let Some(seen) = seen {
                body[HEAD - 4..HEAD].fill(0);
                body.truncate(HEAD);
                body.extend_from_slice(seen);
            }
        })
    }

    fn change(
        &self,
        proxy: &Proxy,
        times: usize,
        change: fn(&mut Option<Vec<u8>>, &mut Vec<u8>),
    ) -> Vec<Hook> {
        let hook = |(index, nth): (usize, usize)| {
            let seen = self.0[index].clone();
            let rewrite = Box::new(move |body: &mut Vec<u8>| change(&mut seen.lock().unwrap(), body));
            let trigger = Trigger::reply(Kind::Exists).path(NODES[index]).nth(nth);
            proxy.on(trigger.then(Action::Rewrite(rewrite)))
        };
        (0..2).flat_map(|index| (1..=times).map(move |nth| (index, nth))).map(hook).collect()
    }
}

fn is_there(hold: &Hold) -> bool {
    let stat = operator().stat(hold.node());
    stat.is_some_and(|stat| stat.czxid.unsigned_abs() == hold.token().value())
}

/// Seed 20646152 of the simulation found this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_without_an_answer_does_the_next_holder_no_harm() {
    let ((client, proxy), other, path) =
        (proxied_client().await, client().await, "/exclusive-ghosts/release");
    let hold = held(&client.single_node(path).unwrap()).await;
    let ghosts = Ghosts::default();
    let seen = ghosts.see(&proxy);
    // The server executes the deletion, whichever request makes it, but the answer is lost.
    let lost = [(Kind::Multi, "-of-lock"), (Kind::Delete, "/lock")]
        .map(|(kind, node)| proxy.on(Trigger::request(kind).path(node).then(Action::DropReplyAndReset)));
    // The client can only connect again when the next contender holds the lock.
    proxy.refuse(true);
    let releasing = tokio::spawn(async move { hold.release().await });
    assert!(until(SOON, || lost.iter().any(Hook::fired)), "nothing is deleted");
    assert_eq!(operator().children(path), [""; 0]);
    let next = held(&other.single_node(path).unwrap()).await;
    assert!(seen[0].fired(), "it did not look at its node");
    let shown = ghosts.appear(&proxy);
    proxy.refuse(false);
    soon(releasing).await.unwrap().unwrap();
    settled(&client).await;
    assert!(shown[0].fired(), "it did not look again");
    assert!(is_there(&next), "the node of the next holder is deleted");
    assert_eq!(next.state(), HoldState::Held);
    soon(next.release()).await.unwrap();
}
