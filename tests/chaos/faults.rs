//! Server faults that are caused on purpose and repaired again, one at a time.

use std::io;
use std::time::{Duration, Instant};

use ground::{Dice, Server};

use crate::field::{DISK, Field};
use crate::judge::{SESSION, TICK};
use crate::servers::Kind;

/// How long the servers may take until they serve again.
const MENDED: Duration = Duration::from_secs(30);

type Strike = fn(&mut Field) -> io::Result<()>;

/// One kind of fault.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// The kind of servers that it is for, unless it is for all.
    pub(crate) only: Option<Kind>,
    /// Breaks it, lets time pass and mends it.
    pub(crate) strike: Strike,
}

const fn fault(name: &'static str, strike: Strike) -> Fault {
    Fault { name, only: None, strike }
}

const fn of_zookeeper(name: &'static str, strike: Strike) -> Fault {
    Fault { name, only: Some(Kind::ZooKeeper), strike }
}

pub(crate) const OF_SERVERS: &[Fault] = &[
    fault("follower paused", |field| {
        let at = follower(field);
        paused(field, at)
    }),
    fault("leader paused", |field| {
        let at = field.servers.leader();
        paused(field, at)
    }),
    fault("follower killed", |field| {
        let at = follower(field);
        killed(field, at)
    }),
    fault("leader killed", |field| {
        let at = field.servers.leader();
        killed(field, at)
    }),
    fault("follower cut off from its leader", |field| {
        let (from, to) = (follower(field), field.servers.leader());
        field.servers.part(from, to);
        let time = sessions(&mut field.dice, 5, 20);
        field.pass(time)?;
        field.servers.join(from, to);
        mended(field)
    }),
    fault("quorum lost", |field| {
        let at = [field.servers.leader(), follower(field)];
        at.iter().for_each(|at| field.servers.kill(*at));
        let time = sessions(&mut field.dice, 2, 15);
        field.pass(time)?;
        at.iter().for_each(|at| field.servers.start(*at));
        mended(field)
    }),
    of_zookeeper("shorter sessions granted", |field| {
        let at = follower(field);
        grant_at_most(field, at, SESSION / 2);
        let time = sessions(&mut field.dice, 5, 20);
        field.pass(time)?;
        grant_at_most(field, at, SESSION * 10);
        mended(field)
    }),
    of_zookeeper("slow disk of the leader", |field| {
        let (at, delay) = (field.servers.leader(), millis(&mut field.dice, 20, 400));
        let time = sessions(&mut field.dice, 5, 20);
        disk(field, at, &format!("slow {}", delay.as_millis()), time)
    }),
    of_zookeeper("slow disk of a follower", |field| {
        let (at, delay) = (follower(field), millis(&mut field.dice, 20, 400));
        let time = sessions(&mut field.dice, 5, 20);
        disk(field, at, &format!("slow {}", delay.as_millis()), time)
    }),
    of_zookeeper("full disk", |field| {
        let at = field.dice.below(field.servers.count());
        let time = sessions(&mut field.dice, 5, 20);
        disk(field, at, "full", time)?;
        // It may have ended by itself, or have stopped working.
        field.servers.stop(at);
        field.servers.start(at);
        mended(field).or_else(|_| with_new_disk(field, at))
    }),
    fault("rolling restart", |field| {
        for at in 0..field.servers.count() {
            field.servers.stop(at);
            field.pass(Duration::from_millis(200))?;
            field.servers.start(at);
            mended(field)?;
        }
        Ok(())
    }),
];

/// Limits the session timeout that a server grants. Half of what the others grant is the least that is supported.
fn grant_at_most(field: &Field, at: usize, timeout: Duration) {
    let millis = timeout.as_millis();
    let least = millis.min(2 * TICK.as_millis());
    field
        .servers
        .zookeeper()
        .server(at)
        .restart_with(&format!("minSessionTimeout={least}\nmaxSessionTimeout={millis}"));
}

/// Gives the disk of a server this order for a time: see disk.c.
fn disk(field: &mut Field, at: usize, order: &str, time: Duration) -> io::Result<()> {
    let orders = field.servers.zookeeper().server(at).home().join(DISK);
    std::fs::write(&orders, order)?;
    field.pass(time)?;
    std::fs::remove_file(orders)
}

/// A time between these numbers of milliseconds.
pub(crate) fn millis(dice: &mut Dice, least: usize, most: usize) -> Duration {
    let millis = least + dice.below(most - least);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// A time between half of this and three halves.
pub(crate) fn around(dice: &mut Dice, time: Duration) -> Duration {
    let time = usize::try_from(time.as_millis()).unwrap_or(usize::MAX / 3);
    millis(dice, time / 2, time * 3 / 2 + 1)
}

/// A time between these numbers of tenths of the session timeout.
pub(crate) fn sessions(dice: &mut Dice, least: usize, most: usize) -> Duration {
    let tenth = usize::try_from(SESSION.as_millis() / 10).unwrap_or(usize::MAX);
    millis(dice, least * tenth, most * tenth)
}

fn follower(field: &mut Field) -> usize {
    // Once there is a leader, the others must follow it.
    let leader = field.servers.leader();
    let followers = field.servers.followers();
    if followers.is_empty() { (leader + 1) % field.servers.count() } else { field.dice.pick(&followers) }
}

fn paused(field: &mut Field, at: usize) -> io::Result<()> {
    field.servers.pause(at);
    let time = sessions(&mut field.dice, 5, 30);
    field.pass(time)?;
    field.servers.resume(at);
    mended(field)
}

fn killed(field: &mut Field, at: usize) -> io::Result<()> {
    field.servers.kill(at);
    let time = sessions(&mut field.dice, 1, 15);
    field.pass(time)?;
    field.servers.start(at);
    mended(field)
}

/// Gives a server an empty disk, as an operator would. After a full disk its files may be so broken that it does not start
/// again. The other two servers have everything that was ever confirmed.
fn with_new_disk(field: &mut Field, at: usize) -> io::Result<()> {
    let figures = field.servers.zookeeper().leader_now().map(Server::mntr).unwrap_or_default();
    // Some versions print it as a floating point number.
    if !figures.get("zk_synced_followers").is_some_and(|count| count.starts_with('1')) {
        return Err(io::Error::other("one server has lost its disk, and the two others are not in step"));
    }
    let server = field.servers.zookeeper().server(at);
    server.stop();
    std::fs::remove_dir_all(server.home().join("data/version-2"))?;
    server.start();
    mended(field)
}

/// Waits until all servers serve again. Client faults go on meanwhile.
fn mended(field: &mut Field) -> io::Result<()> {
    let end = Instant::now() + MENDED;
    loop {
        match field.servers.await_whole(Duration::from_millis(100)) {
            Ok(()) => return Ok(()),
            Err(reason) if Instant::now() > end => return Err(io::Error::other(reason)),
            Err(_) => field.pass(Duration::ZERO)?,
        }
    }
}
