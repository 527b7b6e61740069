//! What many holds and waiters of one client cost. Whatever is done for each of them falls due at one moment after a
//! reconnect. It must not be a write for each, and the heartbeat must not wait behind it.

use crate::support::{SESSION, SOON, acquire, all_held, settled};
use ground::{Action, Gate, Kind, Message, Proxy, Side, Trigger, or_once_more, until};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock::{Client, ClientOptions};
use zklock_testkit::Server;

/// After so long, the servers are asked about whatever is watched and silent.
const SILENCE: Duration = Duration::from_secs(2 * SESSION.as_secs());
/// What a busy machine may do that has no time for the heartbeat.
const LOST: &str = "the session has ended";
const BEAT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 12);

/// A client of a server in memory, which asks for no login even where the others are secured.
async fn client_of(hosts: &str) -> Client {
    Client::connect(ClientOptions::new(hosts).session_timeout(SESSION)).await.unwrap()
}

struct Crowd {
    server: Server,
    proxy: Proxy,
    /// Behind the proxy.
    client: Client,
    other: Client,
}

impl Crowd {
    async fn new() -> Self {
        let server = Server::start().unwrap();
        let proxy = Proxy::start(server.address());
        let client = client_of(&proxy.connect_string()).await;
        let other = client_of(&server.connect_string()).await;
        Self { server, proxy, client, other }
    }

    /// Waits until this many requests of this kind have been sent with a watch. Returns false if the session has ended before, on
    /// a busy machine.
    async fn watches(&self, kind: Kind, count: usize) -> bool {
        let is_watch = |request: &&Message| request.kind == kind && request.watch;
        let watched = || self.proxy.requests().iter().filter(is_watch).count() >= count;
        let start = Instant::now();
        while !watched() {
            if self.client.stats().losses > 0 {
                return false;
            }
            assert!(start.elapsed() < SOON * 4, "fewer than {count} watches");
            // Each look at the record takes a while.
            tokio::time::sleep(SESSION / 8).await;
        }
        true
    }

    /// Waits until what is silent from now on has been asked about, and returns the requests that were sent meanwhile, and the
    /// largest number of heartbeats that may be among them.
    async fn silence(&self) -> (Vec<Message>, usize) {
        let start = Instant::now();
        tokio::time::sleep(SILENCE + SILENCE / 8).await;
        // On a busy machine they come twice as often.
        let beats = start.elapsed().as_millis() / BEAT.as_millis() * 2;
        (self.proxy.requests(), beats as usize)
    }
}

fn writes(requests: &[Message]) -> usize {
    requests.iter().filter(|request| request.kind == Kind::Multi).count()
}

fn paths(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("/{name}/{number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_and_waits_in_which_nothing_happens_cost_a_heartbeat_and_no_more() {
    let crowd = Crowd::new().await;
    crowd.proxy.record();
    let holds = all_held(&crowd.client, &paths("held", 500)).await;
    if !crowd.watches(Kind::GetChildren, holds.len()).await {
        return or_once_more(false, LOST);
    }
    let others = all_held(&crowd.other, &paths("wanted", 300)).await;
    let locks: Vec<_> = others.iter().map(|hold| crowd.client.mutex(hold.path()).unwrap()).collect();
    let waits = acquire(&crowd.client.any(&locks).unwrap());
    // The holds watch their own nodes too.
    if !crowd.watches(Kind::GetData, holds.len() - 8 + others.len()).await {
        return or_once_more(false, LOST);
    }
    crowd.proxy.record();
    let (requests, beats) = crowd.silence().await;
    let writes = writes(&requests);
    assert!(writes > 0 && writes <= beats + 100, "{writes} writes, and not more than {beats} beats");
    // Each waiter looks once, and watches again; no holder does.
    let reads = requests.len() - writes;
    assert!(reads <= 4 * others.len(), "{reads} reads");
    waits.abort();
    let _ = waits.await;
    settled(&crowd.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_reconnect_thousands_send_few_requests_at_a_time_and_no_writes() {
    let crowd = Crowd::new().await;
    let others = all_held(&crowd.other, &paths("wanted", 2_000)).await;
    crowd.proxy.record();
    let holds = all_held(&crowd.client, &paths("held", 2_000)).await;
    if !crowd.watches(Kind::GetChildren, holds.len()).await {
        return or_once_more(false, LOST);
    }
    let mut waits = JoinSet::new();
    for hold in &others {
        let lock = crowd.client.mutex(hold.path()).unwrap();
        waits.spawn(async move { lock.acquire().await });
    }
    if !crowd.watches(Kind::GetData, holds.len() - 8 + others.len()).await {
        return or_once_more(false, LOST);
    }

    // All of them watch again, a heartbeat later at most. What do they send if no answer comes?
    let gate = Gate::new();
    let looks = crowd.proxy.on(Trigger::reply(Kind::GetChildren).then(Action::Pause(gate.clone())));
    crowd.proxy.record();
    crowd.proxy.reset();
    assert!(until(SOON, || looks.fired()), "nobody looks");
    tokio::time::sleep(SESSION / 10 + SESSION / 20).await;
    let is_answer = |message: &&Message| message.side == Side::Reply && message.passed;
    let record = crowd.proxy.messages();
    let asked = record.iter().filter(|message| message.side == Side::Request).count();
    let in_flight = asked - record.iter().filter(is_answer).count();
    gate.open();
    assert!(in_flight <= 1_700, "{in_flight} requests at once");

    let (requests, beats) = crowd.silence().await;
    // Then all waiters have entered again, in another session.
    if crowd.client.stats().losses > 0 {
        return or_once_more(false, LOST);
    }
    let writes = writes(&requests);
    or_once_more(
        writes <= beats + holds.len() / 10,
        &format!("{writes} writes, not more than {beats} beats"),
    );
    let looks = |message: &&Message| message.kind == Kind::GetChildren && message.path.starts_with("/held/");
    let guarded = requests.iter().filter(looks).count();
    assert!(guarded >= holds.len(), "{guarded} holds are guarded again");
    waits.abort_all();
    while waits.join_next().await.is_some() {}
    // All at once, because a release of each takes long.
    drop((crowd.server, holds, others));
}
