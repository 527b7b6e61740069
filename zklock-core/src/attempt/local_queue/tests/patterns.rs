//! Home-made locks whose nodes' names have no room for a mark: an attempt finds its node by the mark in the data.

use super::{answer_at_once, join};
use crate::attempt::local_queue::{HeldAt, LocalQueue};
use crate::attempt::shared::Handle;
use crate::base::clock::{self, virtual_clock};
use crate::machine::claim::Claim;
use crate::machine::name::{Naming, Role, mark_in_data};
use crate::machine::protocol::Patience;
use crate::machine::turns::Passing;
use crate::session::fake::{FakeEnsemble, with_ensemble};
use crate::session::pool::Pool;
use crate::session::slot::{Slot, SlotState};
use std::sync::Arc;
use std::time::Duration;

/// Locks of one client at one path that share no local queue, each with one attempt of its own.
fn locks<const COUNT: usize>(ensemble: &FakeEnsemble) -> [Arc<LocalQueue>; COUNT] {
    let slot = Arc::new(Slot::of(SlotState::Open(ensemble.session())));
    let handle = Handle::new(Pool::of(slot), Arc::default());
    let naming = Naming::pattern("lock-{sequence}").unwrap();
    let claim = Claim::at("/a", Claim::scheme(Role::Exclusive, &naming).unwrap(), &naming).unwrap();
    let held_at: Arc<HeldAt> = Arc::default();
    let locks = std::array::from_fn(|_| {
        let (claims, held_at) = (vec![claim.clone()], vec![held_at.clone()]);
        LocalQueue::new("/a".into(), claims, Passing::default(), held_at, handle.shared().clone())
    });
    // There is always a handle, so somebody may acquire them.
    std::mem::forget(handle);
    locks
}

/// Long enough for a few attempts to get on after lost replies.
async fn a_while() {
    clock::sleep(Duration::from_secs(3)).await;
}

#[test]
fn two_attempts_of_one_session_that_are_in_doubt_at_one_directory_keep_to_their_own_nodes() {
    virtual_clock::run(async {
        for executed in [[true, true], [true, false], [false, true], [false, false]] {
            let ensemble = FakeEnsemble::new();
            let [one, other] = locks(&ensemble);
            ensemble.lose_creations(&executed);
            let mut tickets = [join(&one, Patience::Waits), join(&other, Patience::Waits)];
            a_while().await;
            assert_eq!(ensemble.nodes().len(), 2, "{executed:?}");
            let nodes = ensemble.nodes();
            let [first, second] = [&nodes[0], &nodes[1]].map(|node| ensemble.data(node));
            assert_ne!(mark_in_data(&first).unwrap().1, mark_in_data(&second).unwrap().1);
            // Exactly one of the two holds, by the first node.
            let mut held = Vec::new();
            for ticket in &mut tickets {
                held.push(answer_at_once(ticket).await.flatten());
            }
            let mut holds: Vec<_> =
                held.into_iter().enumerate().filter_map(|(at, hold)| Some((at, hold?))).collect();
            assert_eq!(holds.len(), 1, "{executed:?}");
            let (holder, hold) = holds.remove(0);
            assert_eq!(hold.node(), nodes[0]);
            hold.release().await.unwrap();
            let next = answer_at_once(&mut tickets[1 - holder]).await.flatten().expect("its turn");
            next.release().await.unwrap();
            assert_eq!(ensemble.nodes(), [""; 0], "{executed:?}");
        }
    });
}

#[test]
fn what_is_in_doubt_at_the_end_of_the_session_is_not_looked_for() {
    with_ensemble(async |ensemble| {
        let [queue] = locks(&ensemble);
        let session = queue.shared.pool.slot().current().unwrap();
        ensemble.answer_late(Duration::from_millis(50));
        ensemble.lose_creations(&[true]);
        let mut ticket = join(&queue, Patience::Waits);
        assert!(answer_at_once(&mut ticket).await.is_none());
        ensemble.end_session();
        a_while().await;
        assert!(session.is_over());
        drop(ticket);
        a_while().await;
        assert_eq!(queue.shared.counters.attempts.owed(), 0);
    });
}
