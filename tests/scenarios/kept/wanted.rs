//! A holder learns that others wait.

use crate::support::queue::{acquire, granted, held};
use crate::support::strangers::{SPOKEN, in_dialect};
use crate::support::{SOON, client, operator, proxied_client, soon};
use ground::wire::Mode;
use std::time::Duration;
use zklock_core::{Client, Lock, LockSpec, Role};

/// Too short for anything that does not happen.
const A_MOMENT: Duration = Duration::from_millis(50);

async fn is_told(hold: &zklock_core::Hold) -> bool {
    tokio::time::timeout(A_MOMENT, hold.wanted()).await == Ok(true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_every_kind() {
    type Make = fn(&Client, &str) -> Lock;
    let kinds: [(&str, Make); 6] = [
        ("mutex", |client, path| client.mutex(path).unwrap()),
        ("read", |client, path| client.read(path).unwrap()),
        ("write", |client, path| client.write(path).unwrap()),
        ("election", |client, path| client.election(path).unwrap()),
        ("semaphore", |client, path| client.semaphore(path, 1).unwrap()),
        ("all", |client, path| {
            let one = |name| LockSpec::mutex(&format!("{path}/{name}")).unwrap();
            client.lock(&LockSpec::all([one("a"), one("b")]).unwrap()).unwrap()
        }),
    ];
    let (ours, theirs) = (client().await, client().await);
    for (kind, make) in kinds {
        let path = format!("/wanted/{kind}");
        let hold = held(&make(&ours, &path)).await;
        assert!(!hold.is_wanted() && !is_told(&hold).await, "{kind}: nobody waits");
        let rival = if kind == "read" { theirs.write(&path).unwrap() } else { make(&theirs, &path) };
        let rival = acquire(&rival);
        assert!(soon(hold.wanted()).await && hold.is_wanted(), "{kind}");
        soon(hold.release()).await.unwrap();
        assert!(!hold.is_wanted() && !soon(hold.wanted()).await, "{kind}: it is over");
        soon(granted(rival).await.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_every_library() {
    let (ours, admin) = (client().await, operator());
    for (number, (dialect, role)) in SPOKEN.into_iter().enumerate() {
        let path = format!("/wanted/libraries/{number}");
        let own = if role == Role::Read { Role::Write } else { role };
        let hold = held(&in_dialect(&ours, &path, dialect, own)).await;
        assert!(!is_told(&hold).await, "{dialect:?}, {role:?}: nobody waits");
        // Its name is that of another's node, which comes later.
        let name = hold.node().rsplit('/').next().unwrap();
        admin.create_mode(&format!("{path}/{}", &name[..name.len() - 10]), "", Mode::EphemeralSequential);
        assert!(soon(hold.wanted()).await, "{dialect:?}, {role:?}");
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_want_what_a_reader_has() {
    let (ours, theirs, path) = (client().await, client().await, "/wanted/readers");
    let hold = held(&ours.read(path).unwrap()).await;
    let other = held(&theirs.read(path).unwrap()).await;
    assert!(!is_told(&hold).await);
    let writer = acquire(&theirs.write(path).unwrap());
    assert!(soon(hold.wanted()).await && soon(other.wanted()).await);
    soon(hold.release()).await.unwrap();
    soon(other.release()).await.unwrap();
    soon(granted(writer).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_came_while_the_connection_was_broken_is_seen_after_it() {
    let (ours, proxy) = proxied_client().await;
    let (other, path) = (client().await, "/wanted/broken");
    let hold = held(&ours.mutex(path).unwrap()).await;
    assert!(!is_told(&hold).await);
    proxy.refuse(true);
    proxy.cut();
    let rival = acquire(&other.mutex(path).unwrap());
    operator().wait_for_children(path, 2, SOON);
    proxy.refuse(false);
    assert!(soon(hold.wanted()).await);
    soon(hold.release()).await.unwrap();
    soon(granted(rival).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_is_lost_is_wanted_by_nobody() {
    let (ours, path) = (client().await, "/wanted/lost");
    let hold = held(&ours.mutex(path).unwrap()).await;
    let waits = hold.wanted();
    operator().delete(hold.node());
    assert!(!soon(waits).await);
}
