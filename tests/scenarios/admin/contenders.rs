//! The contenders in the queue, of any kind and library.

use crate::support::{
    SOON, Waiter, acquire, client, expire_session, granted, held, named, nodes, operator, proxied, says, soon,
};
use ground::{Direction, Kind, Trigger};
use std::time::{Duration, SystemTime};
use tokio::task::JoinHandle;
use zklock::further::{Naming, Role};
use zklock::{Client, Error, ErrorKind, Hold, Lock, QueuedContender};

/// Each contender's identity, and whether it holds.
fn summary(contenders: &[QueuedContender]) -> Vec<(&str, bool)> {
    contenders.iter().map(|contender| (contender.identity.as_str(), contender.holds)).collect()
}

/// Lets each of these acquire in a task, one after the other.
async fn queue(path: &str, clients: &[(Client, Lock)]) -> Vec<JoinHandle<Result<Hold, Error>>> {
    let operator = operator();
    let mut tasks = Vec::new();
    for (number, (_, lock)) in clients.iter().enumerate() {
        tasks.push(acquire(lock));
        operator.wait_for_children(path, number + 1, SOON);
    }
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_mutex_all_is_told_in_the_order_of_the_queue() {
    let (path, operator) = ("/contenders/mutex", operator());
    let before = SystemTime::now();
    let mut clients = Vec::new();
    for number in 0..4 {
        let client = named(&format!("host-{number}/4711 ü")).await;
        let lock = client.mutex(path).unwrap();
        clients.push((client, lock));
    }
    let looker = client().await.mutex(path).unwrap();
    assert_eq!(soon(looker.contenders()).await.unwrap(), [], "the directory is not there");
    assert!(operator.stat(path).is_none(), "to look creates nothing");
    let tasks = queue(path, &clients).await;
    let found = soon(looker.contenders()).await.unwrap();
    let after = SystemTime::now();
    let there = nodes(&operator, path);
    assert_eq!(found.len(), 4);
    for (number, contender) in found.iter().enumerate() {
        let stat = operator.stat(&there[number]).unwrap();
        assert_eq!(contender.node, there[number]);
        assert_eq!(contender.node, format!("{path}/{}", contender.name));
        assert_eq!(contender.identity, format!("host-{number}/4711 ü"));
        assert_eq!(Some(contender.session), clients[number].0.session_id());
        assert_eq!(contender.token.value(), stat.czxid.unsigned_abs());
        assert_eq!((&contender.naming, contender.role), (&Naming::Curator, Role::Exclusive));
        assert_eq!(contender.holds, number == 0);
        // The servers use this machine's clock, rounded to the millisecond.
        let rounding = Duration::from_millis(1);
        assert!(contender.since + rounding >= before && contender.since <= after, "{:?}", contender.since);
        assert!(number == 0 || contender.since >= found[number - 1].since);
    }
    let mut tasks = tasks.into_iter();
    let hold = granted(tasks.next().unwrap()).await;
    assert_eq!(found[0].token, hold.token());
    soon(hold.release()).await.unwrap();
    let next = granted(tasks.next().unwrap()).await;
    let found = soon(looker.contenders()).await.unwrap();
    assert_eq!(found.iter().map(|it| it.holds).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(found[0].token, next.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_read_write_lock_the_readers_that_are_let_in_hold() {
    let path = "/contenders/rw";
    let mut clients = Vec::new();
    for (identity, side) in [("r1", 'r'), ("r2", 'r'), ("w3", 'w'), ("r4", 'r')] {
        let client = named(identity).await;
        let lock = if side == 'r' { client.read_lock(path) } else { client.write_lock(path) }.unwrap();
        clients.push((client, lock));
    }
    let tasks = queue(path, &clients).await;
    // Both sides have the same queue.
    for lock in [clients[0].0.read_lock(path).unwrap(), clients[0].0.write_lock(path).unwrap()] {
        let found = soon(lock.contenders()).await.unwrap();
        assert_eq!(summary(&found), [("r1", true), ("r2", true), ("w3", false), ("r4", false)]);
        let roles: Vec<_> = found.iter().map(|contender| contender.role).collect();
        assert_eq!(roles, [Role::Read, Role::Read, Role::Write, Role::Read]);
    }
    let mut tasks = tasks.into_iter();
    for _ in 0..2 {
        soon(granted(tasks.next().unwrap()).await.release()).await.unwrap();
    }
    let writer = granted(tasks.next().unwrap()).await;
    let found = soon(clients[0].1.contenders()).await.unwrap();
    assert_eq!(summary(&found), [("w3", true), ("r4", false)]);
    soon(writer.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_semaphore_permits_come_first_and_then_those_who_wait() {
    let (path, operator) = ("/contenders/semaphore", operator());
    let mut holds = Vec::new();
    let mut clients = Vec::new();
    for identity in ["p1", "p2"] {
        let client = named(identity).await;
        holds.push(held(&client.semaphore(path, 2).unwrap()).await);
        clients.push(client);
    }
    operator.wait_for_children(&format!("{path}/locks"), 0, SOON);
    let waiting = named("w3").await;
    let waiter = acquire(&waiting.semaphore(path, 2).unwrap());
    // The head of the queue has created its permit.
    operator.wait_for_children(&format!("{path}/leases"), 3, SOON);
    let second = named("w4").await;
    let _behind = acquire(&second.semaphore(path, 2).unwrap());
    operator.wait_for_children(&format!("{path}/locks"), 2, SOON);
    let looker = clients[0].semaphore(path, 2).unwrap();
    let found = soon(looker.contenders()).await.unwrap();
    let expected = [("p1", true), ("p2", true), ("w3", false), ("w3", false), ("w4", false)];
    assert_eq!(summary(&found), expected);
    let leases = nodes(&operator, &format!("{path}/leases"));
    assert_eq!(found[..3].iter().map(|it| it.node.clone()).collect::<Vec<_>>(), leases);
    soon(holds[0].release()).await.unwrap();
    let hold = granted(waiter).await;
    operator.wait_for_children(&format!("{path}/leases"), 3, SOON);
    operator.wait_for_children(&format!("{path}/locks"), 1, SOON);
    let found = soon(looker.contenders()).await.unwrap();
    assert_eq!(summary(&found), [("p2", true), ("w3", true), ("w4", false), ("w4", false)]);
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_election_a_single_node_lock_and_a_set() {
    let (operator, root) = (operator(), "/contenders/others");
    let (one, other) = (named("one").await, named("other").await);
    let election = format!("{root}/election");
    let lead = held(&one.election(&election).unwrap()).await;
    let campaign = acquire(&other.election(&election).unwrap());
    operator.wait_for_children(&election, 2, SOON);
    let found = soon(other.election(&election).unwrap().contenders()).await.unwrap();
    assert_eq!(summary(&found), [("one", true), ("other", false)]);

    let single = one.single_node(&format!("{root}/single")).unwrap();
    assert_eq!(soon(single.contenders()).await.unwrap(), []);
    let hold = held(&single).await;
    let found = soon(other.single_node(&format!("{root}/single")).unwrap().contenders()).await.unwrap();
    assert_eq!(summary(&found), [("one", true)], "who waits has no node");
    assert_eq!((found[0].name.as_str(), found[0].token), ("lock", hold.token()));

    // A set lists its queues one after the other.
    let locks = [other.mutex(&format!("{root}/b")).unwrap(), other.mutex(&format!("{root}/a")).unwrap()];
    let set = other.all(&locks).unwrap();
    let both = held(&set).await;
    let behind =
        Waiter::behind(1, &operator, "/contenders/others/a", |it| it.mutex("/contenders/others/a").unwrap());
    let behind = behind.await;
    let found = soon(set.contenders()).await.unwrap();
    let holding: Vec<_> = found.iter().map(|it| (it.node.rsplit_once('/').unwrap().0, it.holds)).collect();
    assert_eq!(
        holding,
        [("/contenders/others/a", true), ("/contenders/others/a", false), ("/contenders/others/b", true)]
    );
    assert_eq!(Some(found[1].session), behind.client.session_id());
    for hold in [lead, hold, both] {
        soon(hold.release()).await.unwrap();
    }
    soon(granted(campaign).await.release()).await.unwrap();
}

/// The contenders of each of these mutexes, as `looker` sees them, in one line.
async fn shown(looker: &Client, paths: &[String]) -> String {
    let mut lines = Vec::new();
    for path in paths {
        let found = soon(looker.mutex(path).unwrap().contenders()).await.unwrap();
        let one = |it: &QueuedContender| format!("{}{}", it.identity, if it.holds { " holds" } else { "" });
        lines.push(found.iter().map(one).collect::<Vec<_>>().join(", "));
    }
    lines.join("; ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_holds_nothing_before_it_is_its_turn_everywhere() {
    let (operator, looker, holder) = (operator(), client().await, named("holder").await);
    for (number, busy) in ["a", "b", "c"].into_iter().enumerate() {
        let paths = ["a", "b", "c"].map(|name| format!("/contenders/set-{busy}/{name}"));
        let hold = held(&holder.mutex(&paths[number]).unwrap()).await;
        let waiting = named("set").await;
        let locks = paths.each_ref().map(|path| waiting.mutex(path).unwrap());
        let set = acquire(&waiting.all(&locks).unwrap());
        operator.wait_for_children(&paths[number], 2, SOON);
        let mut expected = ["set"; 3];
        expected[number] = "holder holds, set";
        assert_eq!(shown(&looker, &paths).await, expected.join("; "));
        soon(hold.release()).await.unwrap();
        let hold = granted(set).await;
        assert_eq!(shown(&looker, &paths).await, "set holds; set holds; set holds");
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_waits_for_permits_holds_nothing() {
    let (operator, looker, holder) = (operator(), client().await, named("holder").await);
    for permits in ["first", "third"] {
        let root = format!("/contenders/permits-{permits}");
        let [semaphore, mutex, election] = [permits, "second", "zeroth"].map(|name| format!("{root}/{name}"));
        let hold = held(&holder.semaphore(&semaphore, 1).unwrap()).await;
        operator.wait_for_children(&format!("{semaphore}/locks"), 0, SOON);
        let waiting = named("set").await;
        let locks = [
            waiting.semaphore(&semaphore, 1).unwrap(),
            waiting.mutex(&mutex).unwrap(),
            waiting.election(&election).unwrap(),
        ];
        let set = acquire(&waiting.all(&locks).unwrap());
        // It is at the head of all queues.
        operator.wait_for_children(&format!("{semaphore}/leases"), 2, SOON);
        let looks = [mutex.clone(), election.clone()];
        assert_eq!(shown(&looker, &looks).await, "set; set");
        let found = soon(looker.semaphore(&semaphore, 1).unwrap().contenders()).await.unwrap();
        assert_eq!(summary(&found), [("holder", true), ("set", false), ("set", false)]);
        soon(hold.release()).await.unwrap();
        let hold = granted(set).await;
        operator.wait_for_children(&format!("{semaphore}/locks"), 0, SOON);
        assert_eq!(shown(&looker, &looks).await, "set holds; set holds");
        let found = soon(looker.semaphore(&semaphore, 1).unwrap().contenders()).await.unwrap();
        assert_eq!(summary(&found), [("set", true)]);
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_waited_for_and_a_dead_one_is_an_error() {
    let path = "/contenders/faults";
    let (client, proxy) = proxied(|options| options.connect_timeout(Duration::from_secs(1))).await;
    let lock = client.mutex(path).unwrap();
    let hold = held(&lock).await;
    for kind in [Kind::GetChildren, Kind::GetData] {
        let lost = proxy.on(Trigger::request(kind).then(ground::Action::DropReplyAndReset));
        let found = soon(lock.contenders()).await.unwrap();
        assert!(lost.fired(), "{kind:?} was not asked for");
        assert_eq!(found[0].token, hold.token());
    }
    soon(hold.release()).await.unwrap();
    expire_session(&proxy);
    assert_eq!(soon(lock.contenders()).await.unwrap(), []);
    proxy.freeze(Direction::Both);
    let error = soon(lock.contenders()).await.unwrap_err();
    says(&error, ErrorKind::Unreachable, &[path, "could not be read"]);
    proxy.thaw();
}
