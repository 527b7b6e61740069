//! Locks in the queues of home-made ones, whose contenders' names a pattern describes.

use crate::support::strangers::{put, spec_in};
use crate::support::{
    SOON, acquire, client, granted, held, named, operator, proxied_client, says, settled, soon,
};
use ground::{Action, Kind, Trigger};
use zklock::further::{Foreign, Naming, Role};
use zklock::{Client, ErrorKind, Lock, LockSpec, LossReason};

/// The layouts that users have, each with what others write before the number in the way of a mutex or a writer.
pub(crate) const LAYOUTS: [(&str, &str); 5] = [
    ("{name}_lock_{sequence}", "lock_lock_"),
    ("{any}-{R|W}-{sequence}", "db-7-W-"),
    ("{any}-lock-{sequence}", "7ce1b6a0-1111-4222-8333-123456789abc-lock-"),
    ("lock-{sequence}", "lock-"),
    ("lock-{any}{sequence}", "lock-144115188075855872"),
];
/// Children that are contenders in none of these layouts.
const OTHERS: [&str; 4] = ["other_lock_", "0123456789abcdef0123456789abcdef__lock__", "n_", "-lock-"];

/// That of a mutex or a writer.
pub(crate) fn role_in(pattern: &str) -> Role {
    if pattern.contains('|') { Role::Write } else { Role::Exclusive }
}

fn spec(path: &str, pattern: &str) -> LockSpec {
    spec_in(path, &Naming::pattern(pattern).unwrap(), role_in(pattern))
}

fn lock(client: &Client, path: &str, pattern: &str) -> Lock {
    client.lock(&spec(path, pattern)).unwrap()
}

/// The path of a lock, and the node whose children are its contenders.
fn place(test: &str, number: usize, pattern: &str) -> (String, String) {
    let above = format!("/patterns/{test}/{number}");
    let path = format!("{above}/lock");
    let directory = if pattern.contains("{name}") { above } else { path.clone() };
    (path, directory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_that_match_take_their_turns_with_ours_and_all_other_children_are_ignored() {
    let (client, operator) = (named("db7").await, operator());
    // What comes before and after the mark in our nodes' names. In the others there is no mark.
    let parts =
        [("lock_lock_", None), ("", Some("-W-")), ("", Some("-lock-")), ("lock-", None), ("lock-", Some(""))];
    for (number, ((pattern, theirs), (head, tail))) in LAYOUTS.into_iter().zip(parts).enumerate() {
        let (path, directory) = &place("turns", number, pattern);
        let lock = lock(&client, path, pattern);
        let others = OTHERS.map(|prefix| put(&operator, directory, prefix));
        let ahead = put(&operator, directory, theirs);
        assert!(soon(lock.try_acquire()).await.unwrap().is_none(), "{pattern}");
        settled(&client).await;
        let waiting = acquire(&lock);
        operator.wait_for_children(directory, others.len() + 2, SOON);
        let behind = put(&operator, directory, theirs);
        operator.delete(&ahead);
        let hold = granted(waiting).await;
        let node = hold.node().to_owned();
        let name = node.strip_prefix(&format!("{directory}/{head}")).expect(pattern);
        let (front, digits) = name.split_at(name.len() - 10);
        let (mark, rest) = front.split_at(if tail.is_some() { 32 } else { 0 });
        assert!(mark.bytes().all(|byte| byte.is_ascii_hexdigit()), "{pattern}: {name}");
        assert!(digits.bytes().all(|byte| byte.is_ascii_digit()), "{pattern}: {name}");
        assert_eq!(rest, tail.unwrap_or_default(), "{pattern}: {name}");
        let contenders = soon(lock.contenders()).await.unwrap();
        let found: Vec<_> =
            contenders.iter().map(|found| (&*found.node, &*found.identity, found.holds)).collect();
        assert_eq!(found, [(&*node, "db7", true), (&*behind, "stranger", false)], "{pattern}");
        assert!(contenders.iter().all(|found| found.naming.to_string() == pattern));
        assert_eq!(contenders[0].token, hold.token());
        soon(hold.release()).await.unwrap();
        operator.delete(&behind);
        others.iter().for_each(|node| operator.delete(node));
        assert_eq!(operator.children(directory), [""; 0], "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_share_the_lock_and_a_writer_has_it_alone() {
    let (ours, operator, path) = (client().await, operator(), "/patterns/sides");
    let naming = Naming::pattern("{any}-{R|W}-{sequence}").unwrap();
    let [read, write] = [LockSpec::read_lock(path), LockSpec::write_lock(path)]
        .map(|spec| ours.lock(&spec.unwrap().naming(naming.clone())).unwrap());
    let reader = put(&operator, path, "db-W-7-R-");
    let first = held(&read).await;
    let waits = acquire(&write);
    operator.wait_for_children(path, 3, SOON);
    let late =
        acquire(&client().await.lock(&LockSpec::read_lock(path).unwrap().naming(naming.clone())).unwrap());
    operator.wait_for_children(path, 4, SOON);
    let contenders = soon(read.contenders()).await.unwrap();
    let seen: Vec<_> = contenders.iter().map(|found| (found.role, found.holds)).collect();
    let expected = [(Role::Read, true), (Role::Read, true), (Role::Write, false), (Role::Read, false)];
    assert_eq!(seen, expected);
    soon(first.release()).await.unwrap();
    assert!(!waits.is_finished(), "the other reader holds");
    operator.delete(&reader);
    let writer = granted(waits).await;
    assert!(!late.is_finished(), "it waits for the writer");
    soon(writer.release()).await.unwrap();
    soon(granted(late).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_cannot_take_the_read_side_within_its_write_side_and_is_told_so() {
    let (client, path) = (client().await, "/patterns/within");
    let naming = Naming::pattern("{R|W}-{sequence}").unwrap();
    let [read, write] = [LockSpec::read_lock(path), LockSpec::write_lock(path)]
        .map(|spec| client.lock(&spec.unwrap().naming(naming.clone()).reentrant(true)).unwrap());
    let hold = soon(write.acquire()).await.unwrap();
    let again = soon(write.acquire()).await.unwrap();
    assert_eq!(again.token(), hold.token(), "it is reentrant");
    says(&soon(read.acquire()).await.unwrap_err(), ErrorKind::Deadlock, &[path]);
    soon(again.release()).await.unwrap();
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_with_other_names_or_patterns_at_one_node_know_nothing_of_each_other() {
    let (client, operator, above) = (client().await, operator(), "/patterns/beside");
    let locks = [
        ("/patterns/beside/report", "{name}_lock_{sequence}"),
        ("/patterns/beside/mail", "{name}_lock_{sequence}"),
        (above, "lock-{sequence}"),
        (above, "{any}.lock.{sequence}"),
    ]
    .map(|(path, pattern)| client.lock(&spec(path, pattern).reentrant(true)).unwrap());
    let mut holds = Vec::new();
    for lock in &locks {
        // By one owner, which would wait for itself if they were one lock.
        holds.push(soon(lock.acquire()).await.unwrap());
    }
    assert_eq!(operator.children(above).len(), 4);
    for (lock, hold) in locks.iter().zip(&holds) {
        let contenders = soon(lock.contenders()).await.unwrap();
        assert_eq!(contenders.iter().map(|found| &*found.node).collect::<Vec<_>>(), [hold.node()]);
    }
    for hold in holds {
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_to_the_creation_costs_no_second_node_whether_it_was_done_or_not() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    for (number, (pattern, theirs)) in LAYOUTS.into_iter().enumerate() {
        let (path, directory) = &place("lost", number, pattern);
        let lock = lock(&client, path, pattern);
        let peer = put(&operator, directory, theirs);
        for is_done in [true, false] {
            let trigger = match is_done {
                true => Trigger::reply(Kind::Create).path(directory).then(Action::DropReplyAndReset),
                false => Trigger::request(Kind::Create).path(directory).then(Action::DropAndReset),
            };
            let lost = proxy.on(trigger);
            let call = acquire(&lock);
            assert!(lost.wait(SOON), "{pattern}");
            operator.wait_for_children(directory, 2, SOON);
            assert!(!call.is_finished(), "{pattern}: the other holds");
            call.abort();
            operator.wait_for_children(directory, 1, SOON);
            settled(&client).await;
            // The other's node is not taken for our own either.
            let lost = proxy.on(Trigger::reply(Kind::Create).path(directory).then(Action::DropReplyAndReset));
            let call = acquire(&lock);
            assert!(lost.wait(SOON), "{pattern}");
            if is_done {
                // The caller gives up before it is known whether there is a node.
                call.abort();
                operator.wait_for_children(directory, 1, SOON);
                settled(&client).await;
            } else {
                operator.delete(&peer);
                let hold = granted(call).await;
                assert_eq!(operator.children(directory).len(), 1, "{pattern}");
                soon(hold.release()).await.unwrap();
            }
        }
        assert_eq!(operator.children(directory), [""; 0], "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_of_a_free_lock_takes_no_more_requests_than_in_another_naming() {
    let ((client, proxy), mut counts) = (proxied_client().await, Vec::new());
    let curator = client.mutex("/patterns/requests").unwrap();
    let ours = LAYOUTS
        .into_iter()
        .enumerate()
        .map(|(number, (pattern, _))| lock(&client, &place("requests", number, pattern).0, pattern));
    for lock in std::iter::once(curator).chain(ours) {
        // The first creates the directory.
        soon(held(&lock).await.release()).await.unwrap();
        proxy.record();
        soon(held(&lock).await.release()).await.unwrap();
        // The heartbeat has times of its own.
        let asked = proxy.counts().asked.into_iter().filter(|kind| *kind != Kind::Multi);
        counts.push(asked.collect::<Vec<_>>());
    }
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

/// Others create the node once, when they start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_above_the_contenders_stays_when_nobody_is_there() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    proxy.record();
    let (path, directory) = &place("stays", 0, LAYOUTS[0].0);
    soon(held(&lock(&client, path, LAYOUTS[0].0)).await.release()).await.unwrap();
    assert_eq!(operator.children(directory), [""; 0]);
    // The servers would delete a container.
    assert!(proxy.messages().iter().all(|message| message.kind != Kind::CreateContainer));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_asks_and_evicts_holders() {
    let (ours, theirs, operator) = (named("db7").await, client().await, operator());
    for (number, (pattern, peer)) in LAYOUTS.into_iter().enumerate() {
        let (path, directory) = &place("operator", number, pattern);
        let [lock, desk] = [&ours, &theirs].map(|client| lock(client, path, pattern));
        let hold = held(&lock).await;
        let observer = desk.observe().unwrap();
        assert_eq!(soon(observer.next()).await.unwrap().unwrap().identity, "db7");
        let asked = soon(desk.request_release()).await.unwrap();
        assert_eq!(asked.len(), 1);
        assert!(soon(hold.wanted()).await.unwrap(), "{pattern}");
        let contenders = soon(desk.contenders()).await.unwrap();
        assert_eq!(contenders[0].identity, "db7", "{pattern}: it keeps its name");
        let other = put(&operator, directory, peer);
        let stranger = put(&operator, directory, OTHERS[0]);
        says(&soon(desk.evict(&stranger)).await.unwrap_err(), ErrorKind::InvalidInput, &["not a contender"]);
        let broken = soon(desk.break_lock()).await.unwrap();
        assert_eq!(broken.iter().map(|broken| &*broken.node).collect::<Vec<_>>(), [hold.node()]);
        assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::NodeDeleted)));
        assert_eq!(soon(observer.next()).await.unwrap().unwrap().node, other);
        assert!(soon(desk.evict(&other)).await.unwrap());
        operator.delete(&stranger);
        soon(hold.release()).await.unwrap_err();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_or_a_path_that_a_pattern_does_not_suit_is_refused_with_the_reason() {
    let client = client().await;
    let naming = |pattern| Naming::pattern(pattern).unwrap();
    let (mutex, sides) = (naming("{name}_lock_{sequence}"), naming("{any}-{R|W}-{sequence}"));
    let path = "/patterns/refused/a";
    let refused = [
        (LockSpec::mutex(path), sides, "for readers and writers, so it is for no mutex"),
        (LockSpec::read_lock(path), mutex.clone(), "does not tell readers from writers"),
        (LockSpec::write_lock(path), mutex.clone(), "does not tell readers from writers"),
        (LockSpec::election(path), mutex.clone(), "an election has no naming scheme {name}_lock_{sequence}"),
        (LockSpec::semaphore(path, 2), mutex.clone(), "a semaphore has no naming scheme"),
        (LockSpec::single_node(path), mutex.clone(), "a single-node lock has no naming scheme"),
        (
            LockSpec::mutex("/top"),
            mutex.clone(),
            "children of the node above the lock's path: that is the root",
        ),
        (LockSpec::mutex("/a/x-5"), naming("{name}-{sequence}"), "as the naming scheme writelock does"),
        (LockSpec::mutex("/a/b-c"), naming("{any}-{name}.{sequence}"), "give the lock another name"),
        (LockSpec::mutex(path), naming("\u{f8ff}{sequence}"), "a character that ZooKeeper forbids"),
    ];
    for (spec, naming, problem) in refused {
        let error = client.lock(&spec.unwrap().naming(naming)).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &[problem]);
    }
    let member = || LockSpec::mutex(path).unwrap().naming(mutex.clone());
    let other = || LockSpec::mutex("/patterns/refused/b").unwrap();
    for error in
        [LockSpec::all([member(), other()]).unwrap_err(), LockSpec::any([member(), other()]).unwrap_err()]
    {
        let parts = [path, "{name}_lock_{sequence}", "acquire that lock by itself"];
        says(&error, ErrorKind::InvalidInput, &parts);
    }
    fn into(text: &str) -> Result<Naming, zklock::Error> {
        Ok(Naming::pattern(text)?)
    }
    says(&into("{name}_lock_").unwrap_err(), ErrorKind::InvalidInput, &["{name}_lock_", "has no {sequence}"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_without_a_pattern_names_the_way_into_the_queue() {
    let (client, operator, path) = (client().await, operator(), "/patterns/way-in");
    for (prefix, way) in [
        ("report_lock_", "the path /patterns/way-in/NAME and the naming {name}_lock_{sequence}"),
        ("lock-", "the naming lock-{sequence}"),
    ] {
        let node = put(&operator, path, prefix);
        let error = soon(client.mutex(path).unwrap().acquire()).await.unwrap_err();
        says(&error, ErrorKind::ForeignContender, &[way]);
        settled(&client).await;
        operator.delete(&node);
    }
    // What the option means does not change with a pattern.
    let spec = spec(path, "lock-{sequence}").foreign(Foreign::Refuse);
    let node = put(&operator, path, "report_lock_");
    soon(held(&client.lock(&spec).unwrap()).await.release()).await.unwrap();
    operator.delete(&node);
}
