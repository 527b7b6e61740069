//! The access lists of created nodes, and locks that work with them.

use crate::support::kinds::{ELECTION, MUTEX, PERMIT, READER, SET, SINGLE_NODE, WRITER};
use crate::support::members::enters;
use crate::support::users::{ANN, BOB, Operator, User, world};
use crate::support::{SOON, acquire, granted, held, operator, reentrant_write, says, settled, soon};
use ground::shared;
use tokio::task::block_in_place;
use zklock::further::Access;
use zklock::{Client, ErrorKind};
use zookeeper_client::{Acl, AuthId, Permission};

/// The access list that Ann's nodes must have.
fn wanted(access: &Access) -> Vec<Acl> {
    match access {
        Access::Open => vec![world(Permission::ALL)],
        Access::CreatorAll => vec![ANN.may_all()],
        Access::List(_) => {
            let singly = SINGLY.map(|(address, _, right)| Acl::new(right, AuthId::new("ip", address)));
            let here = Acl::new(Permission::CREATE | Permission::READ, AuthId::new("ip", "127.0.0.1"));
            let all = [ANN.may_all(), BOB.may_all(), here].into_iter().chain(singly);
            all.chain([world(Permission::READ)]).collect()
        }
        _ => vec![ANN.may_all(), world(Permission::READ)],
    }
}

/// Addresses that nobody has, each with one right: as written in a list, and as the servers store it.
const SINGLY: [(&str, char, Permission); 5] = [
    ("192.0.2.1", 'c', Permission::CREATE),
    ("192.0.2.2", 'd', Permission::DELETE),
    ("192.0.2.3", 'r', Permission::READ),
    ("192.0.2.4", 'w', Permission::WRITE),
    ("192.0.2.5", 'a', Permission::ADMIN),
];

/// Two users by name, everybody on this machine, and each right by itself.
fn of_two() -> Access {
    let user = |user: User| format!("digest:{}:cdrwa", user.id);
    let singly = SINGLY.map(|(address, letter, _)| format!("ip:{address}:{letter}")).join(",");
    format!("{},{},ip:127.0.0.1:cr,{singly},world:anyone:r", user(ANN), user(BOB)).parse().unwrap()
}

/// Asserts that every node below these paths has this list.
pub(super) async fn have_list(operator: &Operator, paths: &[String], access: &Access) {
    for path in paths {
        let mut list = operator.acl(path).await;
        list.sort_by_key(|entry| entry.scheme() == "world");
        assert_eq!(list, wanted(access), "{path}");
    }
}

/// Access lists by name, each with a user who may use what Ann creates with it.
fn accesses() -> [(&'static str, Access, User); 4] {
    [
        // One who is logged in leaves nodes open unless told otherwise.
        ("open", Access::Open, ANN),
        ("creator-all", Access::CreatorAll, ANN),
        ("read-open", Access::ReadOpen, ANN),
        ("list", of_two(), BOB),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_works_with_each_access_list() {
    for (name, access, other) in accesses() {
        let (one, proxy) = ANN.proxied(access.clone()).await;
        let (two, operator) = (other.client(access.clone()).await, ANN.operator().await);
        let root = format!("/access-{name}");
        let limit = format!("{root}/limit");
        soon(one.set_limit(&limit, 1)).await.unwrap();
        have_list(&operator, &[limit], &access).await;
        for kind in [MUTEX, READER, WRITER, ELECTION, PERMIT, SET, SINGLE_NODE] {
            let path = format!("{root}/{}", kind.name);
            let (lock, hold) = ((kind.lock)(&one, &path), held(&(kind.rival)(&two, &path)).await);
            assert!(soon(lock.try_acquire()).await.unwrap().is_none(), "{}", kind.name);
            settled(&one).await;
            let waits = proxy.on((kind.waits)(&path));
            let waiting = acquire(&lock);
            assert!(block_in_place(|| waits.wait(SOON)), "{} does not wait", kind.name);
            let mut nodes = vec![root.clone(), path.clone()];
            for place in kind.places {
                let directory = format!("{path}{place}");
                nodes.extend(operator.children(&directory).await);
                nodes.push(directory);
            }
            have_list(&operator, &nodes, &access).await;
            soon(hold.release()).await.unwrap();
            soon(granted(waiting).await.release()).await.unwrap();
            settled(&one).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_the_servers_do_not_take_is_refused() {
    let path = "/access-unknown";
    let client = ANN.client("nobody-knows:this:cdrwa".parse().unwrap()).await;
    let error = soon(client.mutex(path).unwrap().acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &[path, "do not take the access list", "scheme"]);
    let error = soon(client.barrier(path).unwrap().set()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &[path, "do not take the access list"]);
    assert!(operator().stat(path).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_too_much_with_its_lists_is_refused_before_anything_is_sent() {
    let (_, hash) = ANN.id.split_once(':').unwrap();
    let names = ["ann".to_owned()].into_iter().chain((0..70).map(|number| format!("user{number:02}")));
    let list = names.map(|name| format!("digest:{name}:{hash}:cdrwa"));
    let client = ANN.client(Access::list(list).unwrap()).await;
    let hold = held(&client.mutex("/access-long/lock").unwrap()).await;
    // More than a server takes in one request.
    let paths: Vec<_> = (0..300).map(|number| format!("/access-long/{number:03}")).collect();
    let creations = |count| {
        let paths = paths.iter().take(count);
        paths.fold(hold.guarded(), |writes, path| writes.create(path, b""))
    };
    let error = soon(creations(paths.len()).commit()).await.unwrap_err();
    says(&error, ErrorKind::Conflict, &[&paths[0], "with this access list that is too much for one request"]);
    soon(creations(20).commit()).await.unwrap();
    soon(hold.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guarded_writes_barriers_and_members_have_the_list_too() {
    for (name, access, _) in accesses() {
        let (one, two) = (ANN.client(access.clone()).await, ANN.client(access.clone()).await);
        let operator = ANN.operator().await;
        let root = format!("/access-of-{name}");
        let hold = held(&one.mutex(&format!("{root}/lock")).unwrap()).await;
        let written = format!("{root}/written");
        soon(hold.guarded().create(&written, b"").commit()).await.unwrap();
        have_list(&operator, &[written], &access).await;
        soon(hold.release()).await.unwrap();

        // A reader that takes the place of a writer, in one task.
        let path = format!("{root}/downgrade");
        let write = soon(reentrant_write(&one, &path).acquire()).await.unwrap();
        let read = soon(one.read_lock(&path).unwrap().acquire()).await.unwrap();
        have_list(&operator, &[read.node().to_owned()], &access).await;
        soon(write.release()).await.unwrap();
        soon(read.release()).await.unwrap();

        let path = format!("{root}/barrier");
        let barriers = [&one, &two].map(|client| client.barrier(&path).unwrap());
        assert!(soon(barriers[0].set()).await.unwrap());
        have_list(&operator, std::slice::from_ref(&path), &access).await;
        assert!(soon(barriers[1].is_set()).await.unwrap());
        assert!(soon(barriers[1].remove()).await.unwrap());
        soon(barriers[0].wait()).await.unwrap();

        let path = format!("{root}/members");
        let (first, second) = (enters(&one, &path, 2), enters(&two, &path, 2));
        let members = [soon(first).await.unwrap().unwrap(), soon(second).await.unwrap().unwrap()];
        let mut nodes = operator.children(&path).await;
        assert_eq!(nodes.len(), 3, "two members, and that it is open");
        nodes.push(path);
        have_list(&operator, &nodes, &access).await;
        let leaving = members.map(|member| tokio::spawn(async move { member.leave().await }));
        for left in leaving {
            soon(left).await.unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_users_of_a_client_are_its_creators() {
    let options = ANN.options(&shared().connect_string(), Access::CreatorAll);
    let both = Client::connect(options.credentials(BOB.credentials())).await.unwrap();
    let hold = held(&both.mutex("/access-both").unwrap()).await;
    let list = ANN.operator().await.acl("/access-both").await;
    assert_eq!(list.len(), 2, "{list:?}");
    assert!(list.contains(&ANN.may_all()) && list.contains(&BOB.may_all()), "{list:?}");
    soon(hold.release()).await.unwrap();
    let hold = held(&BOB.client(Access::CreatorAll).await.mutex("/access-both").unwrap()).await;
    soon(hold.release()).await.unwrap();
}
