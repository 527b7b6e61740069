//! Sets and choices of locks that are impossible, and sets that the server refuses.

use crate::support::{
    A_WHILE, SOON, acquire, client, granted, held, nodes, operator, options, proxied_client, says, settled,
    soon,
};
use ground::wire::Mode;
use ground::{Kind, shared};
use zklock::{Client, Error, ErrorKind, Lock};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_or_a_choice_that_makes_no_sense_is_refused_and_the_message_says_why() {
    let (client, other) = (client().await, client().await);
    let [mutex, second] = ["/all/input/m", "/all/input/o"].map(|path| client.mutex(path).unwrap());
    let read = client.read_lock("/all/input/m").unwrap();
    let stranger = other.mutex("/all/input/n").unwrap();
    let exclusive = client.single_node("/all/input/e").unwrap();
    let many: Vec<_> = (0..2000).map(|at| client.mutex(&format!("/all/many/{at}")).unwrap()).collect();
    let refused = |made: Result<Lock, Error>, parts: &[&str]| {
        let error = made.expect_err("it makes no sense");
        says(&error, ErrorKind::InvalidInput, parts);
        assert!(error.to_string().len() < 1000, "the message names 2,000 paths");
    };
    for (make, of, is_too_many) in [
        (Client::all as fn(&Client, &[Lock]) -> _, "not the same lock", "too many for one request"),
        (Client::any, "leave one out", "too many to watch"),
    ] {
        refused(make(&client, &[]), &["one lock at least"]);
        let same = [mutex.clone(), read.clone()];
        refused(make(&client, &same), &["two of them are of one path", of, "/all/input/m"]);
        refused(make(&client, &[mutex.clone(), stranger.clone()]), &["from the client that makes the"]);
        let single = [mutex.clone(), exclusive.clone()];
        refused(make(&client, &single), &["a single-node lock has no queue", "/all/input/e"]);
        refused(make(&client, &many), &[is_too_many, "/all/many/0"]);
    }
    assert!(operator().stat("/all/many").is_none());
    let set = client.all(&[mutex.clone(), second.clone()]).unwrap();
    refused(client.all(&[set.clone(), second.clone()]), &["two of them are of one path"]);
    // A set of sets is allowed, and so is a set of one lock, or of one that is named twice.
    assert_eq!(client.all(&[mutex.clone(), mutex.clone()]).unwrap().path(), "/all/input/m");
    assert_eq!(client.all(&[set]).unwrap().path(), "/all/input/m, /all/input/o");
    soon(held(&client.all(std::slice::from_ref(&mutex)).unwrap()).await.release()).await.unwrap();
    // A choice is neither one of a choice nor of a set, and has no observer.
    let choice = client.any(&[mutex]).unwrap();
    refused(client.any(&[second, choice.clone()]), &["is such a choice itself"]);
    refused(client.all(std::slice::from_ref(&choice)), &["a choice of several locks"]);
    says(&choice.observe().expect_err("refused"), ErrorKind::InvalidInput, &["a choice"]);
    soon(held(&choice).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_is_too_much_for_a_request_the_chroot_is_a_part() {
    let chroot = format!("/{}", "d".repeat(1000));
    operator().create_all(&chroot, "");
    let options = options(&shared().connect_string()).chroot(&chroot);
    let client = soon(Client::connect(options)).await.unwrap();
    let locks: Vec<_> =
        (0..300).map(|number| client.mutex(&format!("/all/many/{number}")).unwrap()).collect();
    let error = client.all(&locks).expect_err("too many");
    says(&error, ErrorKind::InvalidInput, &["too many for one request", "shorten", "the chroot"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_one_of_a_set_waits_for_itself() {
    let (client, root) = (client().await, "/all/self");
    let [a, b] = ["a", "b"].map(|name| client.mutex(&format!("{root}/{name}")).unwrap());
    let set = client.all(&[a.clone(), b.clone()]).unwrap();
    let one = soon(b.acquire()).await.unwrap();
    let itself = |error| says(&error, ErrorKind::Timeout, &["itself"]);
    itself(soon(set.acquire_timeout(A_WHILE)).await.unwrap_err());
    // A release by anybody ends the wait.
    let waiter = acquire(&set);
    operator().wait_for_children("/all/self/a", 1, SOON);
    soon(one.release()).await.unwrap();
    let both = granted(waiter).await;
    soon(both.release()).await.unwrap();
    // And the other way round.
    let both = soon(set.acquire()).await.unwrap();
    itself(soon(a.acquire_timeout(A_WHILE)).await.unwrap_err());
    let overlapping = client.all(&[b, client.mutex("/all/self/c").unwrap()]).unwrap();
    itself(soon(overlapping.acquire_timeout(A_WHILE)).await.unwrap_err());
    soon(both.release()).await.unwrap();
    // It does not wait for a lock that only its owner can release.
    let reentrant = client.lock(&client.all_of(&[a]).unwrap().reentrant(true)).unwrap();
    let one = soon(reentrant.acquire()).await.unwrap();
    says(&soon(set.acquire()).await.unwrap_err(), ErrorKind::Deadlock, &["/all/self/a", "reentrant"]);
    soon(one.release()).await.unwrap();
    for name in ["a", "b", "c"] {
        operator().wait_for_children(&format!("{root}/{name}"), 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_which_one_parent_cannot_be_made_leaves_nothing_in_the_others() {
    let (client, operator, root) = (client().await, operator(), "/all/denied");
    let good = client.mutex(&format!("{root}/good")).unwrap();
    soon(held(&good).await.release()).await.unwrap();
    // An ephemeral node can have no children.
    let leaf = operator.create_mode(&format!("{root}/leaf"), "", Mode::Ephemeral);
    let bad = client.mutex(&format!("{leaf}/bad")).unwrap();
    let set = client.all(&[good.clone(), bad]).unwrap();
    let error = soon(set.acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["/all/denied/leaf/bad"]);
    settled(&client).await;
    assert_eq!(nodes(&operator, &format!("{root}/good")).len(), 0);
    soon(held(&good).await.release()).await.unwrap();
    operator.delete(&leaf);
    soon(held(&set).await.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_which_one_parent_vanishes_is_made_again_as_a_whole() {
    let ((client, proxy), operator, root) = (proxied_client().await, operator(), "/all/vanishes");
    let locks = ["a", "b"].map(|name| client.mutex(&format!("{root}/{name}")).unwrap());
    let set = client.all(&locks).unwrap();
    soon(held(&set).await.release()).await.unwrap();
    operator.delete(&format!("{root}/b"));
    proxy.record();
    let hold = held(&set).await;
    assert_eq!(proxy.counts().requests(Kind::Multi), 2, "refused as a whole, and then done");
    assert_eq!(nodes(&operator, &format!("{root}/a")).len(), 1);
    soon(hold.release()).await.unwrap();
}
