//! A worker with the lock of zklock's own client library (see ../README.md), used as that library offers it: any state other than
//! "connected" ends a hold.

mod common;

use std::time::{Duration, Instant};

use common::{Line, Outcome, PATIENCE, millis, now, time};
use ground::Dice;
use tokio::time::{sleep, timeout};
use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix, SessionState};

fn is_connected(client: &Client) -> bool {
    client.state() == SessionState::SyncConnected
}

/// One turn. It only knows `mutex:/a`.
async fn take(
    line: &mut Line,
    client: &Client,
    turn: u64,
    word: &str,
    times: (Duration, Duration),
) -> Outcome<()> {
    line.say(&format!("want {turn} {word} {}", now()))?;
    let path = word.strip_prefix("mutex:").ok_or("only a mutex")?;
    let parents = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents)?;
    let held =
        match timeout(PATIENCE, client.lock(LockPrefix::new_curator(path, "lock-")?, b"", options)).await {
            Ok(Ok(held)) => held,
            Ok(Err(_)) => return line.say(&format!("gave {turn} {} error", now())),
            Err(_) => return line.say(&format!("gave {turn} {} timeout", now())),
        };
    let mut is_first = true;
    let end = Instant::now() + times.0;
    loop {
        let seen = now();
        if !is_connected(client) {
            line.say(&format!("lost {turn} {} state", now()))?;
            break;
        }
        if is_first {
            line.say(&format!("have {turn} 0 {} {}", held.lock_path(), now()))?;
        } else if Instant::now() >= end || line.is_over() {
            line.say(&format!("done {turn} {seen}"))?;
            break;
        } else {
            line.say(&format!("still {turn} {seen}"))?;
        }
        if !std::mem::take(&mut is_first) {
            sleep(times.1).await;
        }
    }
    drop(held);
    line.say(&format!("free {turn} {}", now()))
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [hosts, session, register, name, seed, locks @ ..] = words.as_slice() else {
        return Err("HOSTS SESSION_MS REGISTER NAME SEED LOCK...".into());
    };
    let session = Duration::from_millis(session.parse()?);
    let mut dice = Dice::new(seed.parse()?);
    let mut line = Line::open(register, name)?;
    let mut client: Option<Client> = None;
    let mut turn = 0;
    while !line.is_over() {
        let Some(connected) = client.take().filter(|client| !client.state().is_terminated()) else {
            client = Client::connector().with_session_timeout(session).connect(hosts).await.ok();
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        turn += 1;
        let word = dice.pick(locks);
        let times = time(&mut dice, &word, session);
        take(&mut line, &connected, turn, &word, times).await?;
        client = Some(connected);
        sleep(millis(&mut dice, 20)).await;
    }
    Ok(())
}
