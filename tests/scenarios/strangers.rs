//! Contenders that cannot see each other: both sides refuse, unless they ignore what they cannot read.

use crate::homemade::SEVERAL;
use crate::support::strangers::{FOREIGN, SPOKEN, in_naming, put, spec_in};
use crate::support::{A_WHILE, SOON, acquire, client, granted, held, nodes, operator, says, settled, soon};
use ground::wire::Mode;
use zklock::further::{Foreign, Naming, Role};
use zklock::{ErrorKind, HoldState, LockSpec, LossReason};

/// Whether the foreign node is a stranger to a lock of this naming scheme and role. Written by hand from the behaviour of the
/// libraries, so that the table in the code does not check itself.
fn is_strange(naming: &Naming, role: Role, foreign: usize) -> bool {
    match (naming, role) {
        // Their mutex does not see the read/write lock, nor anything of kazoo's. Java's WriteLock sees their mutex.
        (Naming::Curator, Role::Exclusive) => [2, 3, 4, 5, 8].contains(&foreign),
        // Readers and readers do not exclude each other, so it does not matter whether they see each other.
        (Naming::Curator, Role::Read) => [0, 1, 4, 6, 7, 8].contains(&foreign),
        (Naming::Curator, _) => [0, 1, 4, 5, 6, 7, 8].contains(&foreign),
        (Naming::Kazoo, Role::Read) => [0, 1, 3, 6, 7, 8].contains(&foreign),
        (Naming::Kazoo, _) => [0, 1, 2, 3, 6, 7, 8].contains(&foreign),
        // Curator and kazoo do not see its nodes.
        _ => [0, 1, 2, 3, 4, 5, 8].contains(&foreign),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contender_that_cannot_see_ours_is_named_and_ours_goes_again() {
    let (client, operator) = (client().await, operator());
    for (naming, role) in SPOKEN {
        for (number, prefix) in FOREIGN.into_iter().enumerate() {
            let path = format!("/strangers/{naming}-{role:?}-{number}");
            let node = put(&operator, &path, prefix);
            let name = node.rsplit_once('/').unwrap().1;
            let lock = in_naming(&client, &path, &naming, role);
            let tried = soon(lock.try_acquire()).await;
            if is_strange(&naming, role, number) {
                let error = tried.expect_err(&path);
                says(&error, ErrorKind::ForeignContender, &[name, &path]);
                says(&soon(lock.acquire()).await.unwrap_err(), ErrorKind::ForeignContender, &[name]);
            } else {
                tried.unwrap_or_else(|error| {
                    panic!("{prefix} is not a stranger to {naming} {role:?}: {error}")
                });
            }
            settled(&client).await;
            assert_eq!(nodes(&operator, &path), [node.as_str()], "{path}");
            operator.delete(&node);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_comes_behind_a_waiter_is_noticed_when_the_waiter_looks_again() {
    let (path, client, operator) = ("/strangers/behind", client().await, operator());
    let ahead = [put(&operator, path, FOREIGN[0]), put(&operator, path, FOREIGN[0])];
    let task = acquire(&client.mutex(path).unwrap());
    operator.wait_for_children(path, 3, SOON);
    let stranger = put(&operator, path, FOREIGN[4]);
    ahead.iter().rev().for_each(|node| operator.delete(node));
    let error = soon(task).await.unwrap().unwrap_err();
    says(&error, ErrorKind::ForeignContender, &[stranger.rsplit_once('/').unwrap().1]);
    settled(&client).await;
    assert_eq!(nodes(&operator, path), [stranger.as_str()]);
    operator.delete(&stranger);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_ignores_the_unknown_waits_for_a_stranger_that_it_can_read() {
    let (client, operator) = (client().await, operator());
    for (naming, role) in SPOKEN {
        let path = format!("/strangers/ahead-{naming}-{role:?}");
        // A writer of another library is in everybody's way, whatever it can see.
        let prefix = if naming == Naming::Kazoo { FOREIGN[0] } else { FOREIGN[4] };
        let before = put(&operator, &path, prefix);
        let careless = spec_in(&path, &naming, role).foreign(Foreign::IgnoreUnknown);
        let task = acquire(&client.lock(&careless).unwrap());
        operator.wait_for_children(&path, 2, SOON);
        let behind = put(&operator, &path, prefix);
        assert!(!ground::until(A_WHILE / 5, || task.is_finished()), "{path}");
        operator.delete(&before);
        let hold = granted(task).await;
        assert!(operator.stat(&behind).is_some(), "one behind is not waited for");
        soon(hold.release()).await.unwrap();
        operator.delete(&behind);
    }
}

/// A contender of kazoo's `Lock`, and a holder of its `Semaphore`, which has no number.
const KAZOO: [(&str, Mode); 2] = [
    ("0123456789abcdef0123456789abcdef__lock__", Mode::EphemeralSequential),
    ("0123456789abcdef0123456789abcdef", Mode::Ephemeral),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_told_of_a_contender_that_comes_and_cannot_see_it() {
    let (client, operator) = (client().await, operator());
    let home_made = ["lock-", "192.168.0.1-W-", SEVERAL].map(|name| (name, Mode::EphemeralSequential));
    for (number, (name, mode)) in KAZOO.into_iter().chain(home_made).enumerate() {
        let path = &format!("/strangers/after-{number}");
        for lock in [client.mutex(path), client.read_lock(path), client.election(path)] {
            let hold = held(&lock.unwrap()).await;
            let node = operator.create_mode(&format!("{path}/{name}"), "", mode);
            assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::ForeignContender)));
            let error = soon(hold.release()).await.unwrap_err();
            says(&error, ErrorKind::Lost(LossReason::ForeignContender), &[path, "contender"]);
            settled(&client).await;
            assert_eq!(operator.tree(path).len(), 2, "its own node is gone");
            operator.delete(&node);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_hears_nothing_of_those_that_see_it_nor_if_it_ignores_the_unknown() {
    let (client, operator) = (client().await, operator());
    let careless = LockSpec::mutex("/strangers/careless").unwrap().foreign(Foreign::IgnoreUnknown);
    let careless = held(&client.lock(&careless).unwrap()).await;
    let strange = operator.create_mode(&format!("/strangers/careless/{}", KAZOO[0].0), "", KAZOO[0].1);
    let hold = held(&client.mutex("/strangers/seen").unwrap()).await;
    let waiter = put(&operator, "/strangers/seen", FOREIGN[0]);
    // This client comes after the strangers and learns of them, so the earlier clients would have by now.
    let told = held(&client.mutex("/strangers/told").unwrap()).await;
    let last = operator.create_mode(&format!("/strangers/told/{}", KAZOO[0].0), "", KAZOO[0].1);
    assert_eq!(soon(told.lost()).await, Ok(Some(LossReason::ForeignContender)));
    for hold in [&careless, &hold] {
        assert_eq!(hold.state(), HoldState::Held);
        soon(hold.release()).await.unwrap();
    }
    for node in [strange, waiter, last] {
        operator.delete(&node);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_holds_kazoos_semaphore_at_the_same_path_is_refused() {
    let (client, operator, path) = (client().await, operator(), "/strangers/semaphore");
    operator.create_all(path, "");
    let node = operator.create_mode(&format!("{path}/{}", KAZOO[1].0), "", KAZOO[1].1);
    for lock in
        [client.mutex(path).unwrap(), client.read_lock(path).unwrap(), client.semaphore(path, 5).unwrap()]
    {
        let error = soon(lock.acquire()).await.unwrap_err();
        says(&error, ErrorKind::ForeignContender, &[KAZOO[1].0, path, "Semaphore"]);
        settled(&client).await;
    }
    for spec in [LockSpec::mutex(path).unwrap(), LockSpec::semaphore(path, 5).unwrap()] {
        drop(held(&client.lock(&spec.foreign(Foreign::IgnoreUnknown)).unwrap()).await);
    }
    settled(&client).await;
    operator.delete(&node);
}
