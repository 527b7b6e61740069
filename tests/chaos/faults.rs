//! Server faults that are caused on purpose and repaired again, one at a time.

use std::io;
use std::time::{Duration, Instant};

use ground::{Dice, Server};

use crate::field::{DATE, DISK, Field};
use crate::jobs::Between;
use crate::judge::{SESSION, TICK};
use crate::record::lock;
use crate::report::now;
use crate::workers::JOBS;

/// How long the servers may take until they serve again. A server that was left alone asks for a leader ever more rarely, up to once
/// in a minute.
const MENDED: Duration = Duration::from_secs(90);
const HOUR: i64 = 3_600;
const TEN_YEARS: i64 = 87_660 * HOUR;

/// One kind of fault, of servers or of clients.
pub(crate) struct Fault<Strike> {
    pub(crate) name: &'static str,
    /// Whether it needs servers that serve.
    pub(crate) is_served: bool,
    pub(crate) strike: Strike,
}

type Whom = fn(&mut Field) -> usize;
type Act = fn(&mut Field, usize) -> io::Result<()>;
/// Chooses a server; and breaks it, lets time pass, and repairs it.
pub(crate) type AtServer = (Whom, Act);

const fn fault(name: &'static str, whom: Whom, act: Act) -> Fault<AtServer> {
    Fault { name, is_served: false, strike: (whom, act) }
}

pub(crate) const OF_SERVERS: &[Fault<AtServer>] = &[
    fault("follower paused", follower, paused),
    fault("leader paused", leader, paused),
    fault("follower killed", follower, killed),
    fault("leader killed", leader, killed),
    fault("follower cut off from its leader", follower, |field, from| {
        let to = field.servers.leader();
        field.servers.part(from, to);
        lasts(field, 5, 20)?;
        field.servers.join(from, to);
        mended(field)
    }),
    fault("quorum lost", leader, |field, at| {
        let at = [at, follower(field)];
        at.iter().for_each(|at| field.servers.kill(*at));
        lasts(field, 2, 15)?;
        at.iter().for_each(|at| field.servers.start(*at));
        mended(field)
    }),
    fault("shorter sessions granted", follower, |field, at| {
        grant_at_most(field, at, SESSION / 2);
        lasts(field, 5, 20)?;
        grant_at_most(field, at, SESSION * 10);
        mended(field)
    }),
    fault("date of the leader an hour ahead", leader, |field, at| wrong_date(field, at, HOUR)),
    fault("date of the leader an hour behind", leader, |field, at| wrong_date(field, at, -HOUR)),
    fault("date of the leader ten years ahead", leader, |field, at| wrong_date(field, at, TEN_YEARS)),
    fault("date of the leader ten years behind", leader, |field, at| wrong_date(field, at, -TEN_YEARS)),
    fault("slow disk of the leader", leader, slow_disk),
    fault("slow disk of a follower", follower, slow_disk),
    fault("full disk", any, |field, at| {
        disk(field, at, "full")?;
        // It may have ended by itself, or have stopped working.
        field.servers.stop(at);
        field.servers.start(at);
        mended(field).or_else(|_| with_new_disk(field, at))
    }),
    fault("rolling restart", any, |field, _| {
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
        .ensemble()
        .server(at)
        .restart_with(&format!("minSessionTimeout={least}\nmaxSessionTimeout={millis}"));
}

/// Gives the disk of a server this order for a time: see disk.c.
fn disk(field: &mut Field, at: usize, order: &str) -> io::Result<()> {
    let orders = field.servers.ensemble().server(at).home().join(DISK);
    std::fs::write(&orders, order)?;
    lasts(field, 5, 20)?;
    std::fs::remove_file(orders)
}

fn slow_disk(field: &mut Field, at: usize) -> io::Result<()> {
    let delay = millis(&mut field.dice, 20, 400);
    disk(field, at, &format!("slow {}", delay.as_millis()))
}

/// Gives a server a date that is wrong by so many seconds for a time. If it was ahead, an operator then deletes the records that
/// are from the future by more than a period, as the errors say.
fn wrong_date(field: &mut Field, at: usize, seconds: i64) -> io::Result<()> {
    let date = field.servers.ensemble().server(at).home().join(DATE);
    let begin = now();
    field.register.book.jobs.date_is_wrong(Between(begin, u64::MAX));
    std::fs::write(&date, seconds.to_string())?;
    lasts(field, 5, 20)?;
    std::fs::remove_file(date)?;
    field.register.book.jobs.date_is_wrong(Between(begin, now()));
    lasts(field, 5, 10)?;
    mended(field)?;
    let ahead = u64::try_from(seconds).unwrap_or_default() * 1_000_000_000;
    let jobs = JOBS.iter().filter_map(|job| lock(job));
    for (path, ..) in jobs.filter(|(.., terms)| terms.is_some_and(|terms| terms.every < ahead)) {
        let begin = now();
        // It may not have been written yet.
        let _ = field.servers.admin().try_delete(&format!("{path}/last-run"));
        field.register.book.jobs.is_forgotten(&path, Between(begin, now()));
    }
    Ok(())
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

/// Lets a time pass, between these numbers of tenths of the session timeout.
fn lasts(field: &mut Field, least: usize, most: usize) -> io::Result<()> {
    let time = sessions(&mut field.dice, least, most);
    field.pass(time)
}

fn leader(field: &mut Field) -> usize {
    field.servers.leader()
}

fn any(field: &mut Field) -> usize {
    field.dice.below(field.servers.count())
}

fn follower(field: &mut Field) -> usize {
    // Once there is a leader, the others must follow it.
    let leader = field.servers.leader();
    let followers = field.servers.followers();
    if followers.is_empty() { (leader + 1) % field.servers.count() } else { field.dice.pick(&followers) }
}

fn paused(field: &mut Field, at: usize) -> io::Result<()> {
    field.servers.pause(at);
    lasts(field, 5, 30)?;
    field.servers.resume(at);
    mended(field)
}

fn killed(field: &mut Field, at: usize) -> io::Result<()> {
    field.servers.kill(at);
    lasts(field, 1, 15)?;
    field.servers.start(at);
    mended(field)
}

/// Gives a server an empty disk, as an operator would. After a full disk its files may be so broken that it does not start
/// again. The other two servers have everything that was ever confirmed.
fn with_new_disk(field: &mut Field, at: usize) -> io::Result<()> {
    let figures = field.servers.ensemble().leader_now().map(Server::mntr).unwrap_or_default();
    // Some versions print it as a floating point number.
    if !figures.get("zk_synced_followers").is_some_and(|count| count.starts_with('1')) {
        return Err(io::Error::other("one server has lost its disk, and the two others are not in step"));
    }
    let server = field.servers.ensemble().server(at);
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
