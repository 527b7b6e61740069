//! If a wait times out, its error names the holder and says how many more are ahead.

use crate::support::{SOON, acquire, client, held, named, operator, proxied_client, says, settled, soon};
use ground::{Kind, Proxy};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock::{ErrorKind, Lock};

const A_WHILE: Duration = Duration::from_millis(300);

/// Tries to acquire the lock again and again until the error has all these parts. The client asks the servers shortly before the
/// deadline, and on a busy machine the answer may come too late.
async fn comes_to_say(timeout: Duration, lock: &Lock, parts: &[&str]) {
    let end = Instant::now() + SOON;
    let always = if timeout.is_zero() { "is held by another" } else { "others are before us in the queue" };
    loop {
        let error = lock.acquire_timeout(timeout).await.unwrap_err();
        says(&error, ErrorKind::Timeout, &[]);
        assert!([always, "wait longer"].iter().any(|part| error.to_string().contains(part)), "{error}");
        if parts.iter().all(|part| error.to_string().contains(part)) {
            return;
        }
        assert!(Instant::now() < end, "{parts:?} is not in: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holder_of_a_mutex_and_those_ahead() {
    let (path, holder, waiter) = ("/named-mutex", named("db7/4711").await, client().await);
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let node = hold.node().rsplit('/').next().unwrap();
    let says = format!("queue: db7/4711 holds it (its node {node} is ");
    let lock = waiter.mutex(path).unwrap();
    comes_to_say(A_WHILE, &lock, &[&says, " s old); we are next"]).await;
    // Behind another client, and behind a caller of our own client that waits behind that.
    let other = acquire(&client().await.mutex(path).unwrap());
    operator().wait_for_children(path, 2, SOON);
    comes_to_say(A_WHILE, &lock, &[&says, "; 1 more before us"]).await;
    let own = acquire(&lock);
    operator().wait_for_children(path, 3, SOON);
    comes_to_say(A_WHILE, &lock, &[&says, "; 2 more before us"]).await;
    // Another task of the holder's client.
    let lock = holder.mutex(path).unwrap();
    let parts = ["another caller of this client holds it (its node "];
    soon(tokio::spawn(async move { comes_to_say(A_WHILE, &lock, &parts).await })).await.unwrap();
    own.abort();
    other.abort();
    settled(&waiter).await;
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holders_of_other_kinds() {
    let (holder, waiter) = (named("db7/4711").await, client().await);
    let path = "/named-readers";
    let mut holds = Vec::new();
    for _ in 0..3 {
        holds.push(held(&holder.read_lock(path).unwrap()).await);
    }
    let parts = ["queue: db7/4711 and 2 others hold it (its node ", "; we are next"];
    comes_to_say(A_WHILE, &waiter.write_lock(path).unwrap(), &parts).await;

    let path = "/named-permits";
    for _ in 0..2 {
        holds.push(soon(holder.semaphore(path, 2).unwrap().acquire()).await.unwrap());
    }
    let parts = ["queue: db7/4711 and another hold it (its node "];
    comes_to_say(A_WHILE, &waiter.semaphore(path, 2).unwrap(), &parts).await;

    let path = "/named-exclusive";
    holds.push(soon(holder.single_node(path).unwrap().acquire()).await.unwrap());
    let parts = ["queue: db7/4711 holds it (its node lock is "];
    comes_to_say(A_WHILE, &waiter.single_node(path).unwrap(), &parts).await;

    // In the first queue of this set nobody is ahead of it.
    let path = "/named-set";
    holds.push(soon(holder.mutex(path).unwrap().acquire()).await.unwrap());
    let set = waiter.all(&[waiter.mutex("/named-free").unwrap(), waiter.mutex(path).unwrap()]).unwrap();
    comes_to_say(A_WHILE, &set, &["queue: db7/4711 holds it (its node ", "; we are next"]).await;
    settled(&waiter).await;
    for hold in holds {
        soon(hold.release()).await.unwrap();
    }
}

/// How often a holder's node has been read since the recording began.
fn questions(proxy: &Proxy) -> usize {
    proxy.requests().iter().filter(|request| request.kind == Kind::GetData && !request.watch).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_names_the_holder_too() {
    let (holder, waiter) = (named("db7/4711").await, client().await);
    let path = "/named-try";
    let mut holds = vec![soon(holder.mutex(path).unwrap().acquire()).await.unwrap()];
    let node = holds[0].node().rsplit('/').next().unwrap();
    let says = format!("the lock {path} is held by another: db7/4711 holds it (its node {node} is ");
    comes_to_say(Duration::ZERO, &waiter.mutex(path).unwrap(), &[&says]).await;
    // Another task of the holder's client.
    let lock = holder.mutex(path).unwrap();
    let parts = ["another: another caller of this client holds it (its node "];
    soon(tokio::spawn(async move { comes_to_say(Duration::ZERO, &lock, &parts).await })).await.unwrap();

    // Of a choice, the holder of the lock that was named first.
    holds.push(soon(holder.semaphore("/named-try-permits", 1).unwrap().acquire()).await.unwrap());
    let semaphore = waiter.semaphore("/named-try-permits", 1).unwrap();
    let choice = waiter.any(&[waiter.mutex("/named-try").unwrap(), semaphore]).unwrap();
    let parts = ["every one of the 2 locks", "; of /named-try: db7/4711 holds it (its node "];
    comes_to_say(Duration::ZERO, &choice, &parts).await;
    settled(&waiter).await;
    for hold in holds {
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tries_in_a_loop_ask_for_the_holder_once_a_second() {
    const TRIES: u64 = 100;
    let (holder, (waiter, proxy)) = (client().await, proxied_client().await);
    let path = "/named-loop";
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let lock = waiter.mutex(path).unwrap();
    proxy.record();
    let begun = Instant::now();
    for _ in 0..TRIES {
        comes_to_say(Duration::ZERO, &lock, &[]).await;
    }
    let seconds = begun.elapsed().as_secs();
    let reads = questions(&proxy) as u64;
    assert!((1..=1 + seconds).contains(&reads), "{reads} questions in {seconds} s");
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_question_serves_all_that_give_up_together() {
    const CALLERS: usize = 100;
    let (holder, (waiter, proxy)) = (client().await, proxied_client().await);
    let path = "/named-together";
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let lock = waiter.mutex(path).unwrap();
    let end = Instant::now() + SOON;
    loop {
        proxy.record();
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let lock = lock.clone();
            callers.spawn(async move { lock.acquire_timeout(A_WHILE).await.unwrap_err() });
        }
        soon(callers.join_all()).await;
        settled(&waiter).await;
        let reads = questions(&proxy);
        assert!(reads <= CALLERS / 10, "{reads} questions");
        // If the machine is late, all deadlines may be over before anything is asked.
        if reads > 0 {
            break;
        }
        assert!(Instant::now() < end, "nobody has asked");
    }
    soon(hold.release()).await.unwrap();
}
