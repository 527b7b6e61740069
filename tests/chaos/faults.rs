//! What is broken on purpose, and mended again.

use std::io;
use std::time::Duration;

use ground::wire::try_expire;
use ground::{Direction, Server};

use crate::field::{DISK, Field, SESSION};
use crate::report::now;
use crate::workers::PLACES;

/// How long the servers may take until they serve again.
const MENDED: Duration = Duration::from_secs(30);

type Strike = fn(&mut Field) -> io::Result<()>;

/// One kind of fault.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// How often it comes, beside the others.
    pub(crate) weight: usize,
    /// Breaks it, lets time pass and mends it.
    pub(crate) strike: Strike,
}

const fn fault(name: &'static str, weight: usize, strike: Strike) -> Fault {
    Fault { name, weight, strike }
}

pub(crate) const FAULTS: &[Fault] = &[
    fault("connections closed", 8, |field| {
        group(field).iter().for_each(ground::Proxy::cut);
        Ok(())
    }),
    fault("connections reset", 8, |field| {
        group(field).iter().for_each(ground::Proxy::reset);
        Ok(())
    }),
    fault("connections half open", 4, |field| {
        group(field).iter().for_each(ground::Proxy::half_open);
        Ok(())
    }),
    fault("requests frozen", 4, |field| frozen(field, Direction::ToServer)),
    fault("replies frozen", 4, |field| frozen(field, Direction::ToClient)),
    fault("both ways frozen", 4, |field| frozen(field, Direction::Both)),
    fault("ways delayed", 4, |field| {
        let (at, delay) = (field.dice.below(field.groups.len()), millis(field, 20, 400));
        field.groups[at].iter().for_each(|way| way.delay(delay));
        let time = sessions(field, 5, 15);
        field.pass(time)?;
        field.groups[at].iter().for_each(|way| way.delay(Duration::ZERO));
        Ok(())
    }),
    fault("servers out of reach", 3, |field| {
        let at = field.dice.below(field.groups.len());
        field.groups[at].iter().for_each(|way| way.refuse(true));
        field.groups[at].iter().for_each(ground::Proxy::reset);
        let time = sessions(field, 2, 15);
        field.pass(time)?;
        field.groups[at].iter().for_each(|way| way.refuse(false));
        Ok(())
    }),
    fault("client paused", 8, |field| {
        let at = field.dice.below(field.workers.running.len());
        let name = field.workers.running[at].name.clone();
        field.workers.running[at].pause();
        let time = sessions(field, 5, 30);
        field.pass(time)?;
        let worker = field.workers.running.iter_mut().find(|worker| worker.name == name);
        worker.into_iter().for_each(crate::workers::Worker::resume);
        Ok(())
    }),
    fault("client killed", 6, |field| {
        let at = field.dice.below(field.workers.running.len());
        let worker = field.workers.kill(at)?;
        field.start(worker.program, worker.group)
    }),
    fault("session ended", 5, |field| {
        let at = field.dice.below(field.groups.len());
        let address = field.ensemble.leader().address();
        let latest: Vec<_> = field.groups[at].iter().filter_map(|way| way.session().pop()).collect();
        let (id, password, _) = field.dice.pick(&latest);
        // It creates no node more that the judge would not know of.
        field.groups[at].iter().for_each(|way| way.freeze(Direction::ToServer));
        field.pass(Duration::from_millis(100))?;
        forgive(field, |_, owner| owner == id);
        // It may have ended by itself.
        let _ = try_expire(address, id, &password);
        field.groups[at].iter().for_each(ground::Proxy::thaw);
        Ok(())
    }),
    fault("node deleted", 5, |field| {
        let (place, lock) =
            (field.dice.pick(&PLACES), field.dice.pick(&["mutex", "lingering", "sides", "permits/leases"]));
        let path = format!("/{place}/{lock}");
        let admin = field.admin();
        let Ok(Some(children)) = admin.try_children(&path) else { return Ok(()) };
        if !children.is_empty() {
            let node = format!("{path}/{}", field.dice.pick(&children));
            forgive(field, |path, _| *path == node);
            // Its owner may have been quicker.
            let _ = admin.try_delete(&node);
        }
        Ok(())
    }),
    fault("follower paused", 3, |field| {
        let at = follower(field);
        paused(field, at)
    }),
    fault("leader paused", 3, |field| {
        let at = leader(field);
        paused(field, at)
    }),
    fault("follower killed", 2, |field| {
        let at = follower(field);
        killed(field, at)
    }),
    fault("leader killed", 2, |field| {
        let at = leader(field);
        killed(field, at)
    }),
    fault("follower cut off from its leader", 3, |field| {
        let (from, to) = (follower(field), leader(field));
        let servers = field.ensemble.servers();
        field.ensemble.quorum_link(&servers[from], &servers[to]).freeze(Direction::Both);
        let time = sessions(field, 5, 20);
        field.pass(time)?;
        let servers = field.ensemble.servers();
        field.ensemble.quorum_link(&servers[from], &servers[to]).thaw();
        mended(field);
        Ok(())
    }),
    fault("quorum lost", 1, |field| {
        let at = [leader(field), follower(field)];
        at.iter().for_each(|at| field.ensemble.server(*at).kill());
        let time = sessions(field, 2, 15);
        field.pass(time)?;
        at.iter().for_each(|at| field.ensemble.server(*at).start());
        mended(field);
        Ok(())
    }),
    fault("shorter sessions granted", 1, |field| {
        let at = follower(field);
        // Half of what the sessions have: a fifth or more is borne.
        let (least, most) = (SESSION / 2, SESSION * 10);
        field.ensemble.server(at).restart_with(&format!("maxSessionTimeout={}", least.as_millis()));
        let time = sessions(field, 5, 20);
        field.pass(time)?;
        field.ensemble.server(at).restart_with(&format!("maxSessionTimeout={}", most.as_millis()));
        mended(field);
        Ok(())
    }),
    fault("slow disk of the leader", 2, |field| {
        let (at, delay) = (leader(field), millis(field, 20, 400));
        let time = sessions(field, 5, 20);
        disk(field, at, &format!("slow {}", delay.as_millis()), time)
    }),
    fault("slow disk of a follower", 2, |field| {
        let (at, delay) = (follower(field), millis(field, 20, 400));
        let time = sessions(field, 5, 20);
        disk(field, at, &format!("slow {}", delay.as_millis()), time)
    }),
    fault("full disk", 1, |field| {
        let at = field.dice.below(field.ensemble.servers().len());
        let time = sessions(field, 5, 20);
        disk(field, at, "full", time)?;
        // It may have ended by itself, or be of no use any more.
        field.ensemble.server(at).stop();
        field.ensemble.server(at).start();
        mended(field);
        Ok(())
    }),
    fault("rolling restart", 1, |field| {
        for at in 0..field.ensemble.servers().len() {
            field.ensemble.server(at).stop();
            field.pass(Duration::from_millis(200))?;
            field.ensemble.server(at).start();
            mended(field);
        }
        Ok(())
    }),
];

/// Tells the judge which nodes an operator deletes now, by their path and owner.
fn forgive(field: &mut Field, is_one: impl Fn(&String, i64) -> bool) {
    let admin = field.admin();
    let nodes = PLACES.into_iter().flat_map(|place| admin.tree(&format!("/{place}")));
    for node in nodes {
        // It may be gone by now.
        let Ok(Some(stat)) = admin.try_stat(&node) else { continue };
        if is_one(&node, stat.ephemeral_owner) {
            field.register.book.judge.deletes(node, now());
        }
    }
}

/// Gives the disk of a server this order for a time: see disk.c.
fn disk(field: &mut Field, at: usize, order: &str, time: Duration) -> io::Result<()> {
    let orders = field.ensemble.server(at).home().join(DISK);
    std::fs::write(&orders, order)?;
    field.pass(time)?;
    std::fs::remove_file(orders)
}

fn millis(field: &mut Field, least: usize, most: usize) -> Duration {
    let millis = least + field.dice.below(most - least);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// A time between so many tenths of the session timeout.
fn sessions(field: &mut Field, least: usize, most: usize) -> Duration {
    let tenth = usize::try_from(SESSION.as_millis() / 10).unwrap_or(usize::MAX);
    millis(field, least * tenth, most * tenth)
}

fn group(field: &mut Field) -> &[ground::Proxy] {
    let at = field.dice.below(field.groups.len());
    &field.groups[at]
}

fn frozen(field: &mut Field, direction: Direction) -> io::Result<()> {
    let at = field.dice.below(field.groups.len());
    field.groups[at].iter().for_each(|way| way.freeze(direction));
    let time = sessions(field, 1, 20);
    field.pass(time)?;
    field.groups[at].iter().for_each(ground::Proxy::thaw);
    Ok(())
}

fn index(field: &Field, server: &Server) -> usize {
    field.ensemble.servers().iter().position(|one| one.number() == server.number()).unwrap_or_default()
}

fn leader(field: &Field) -> usize {
    index(field, field.ensemble.leader())
}

fn follower(field: &mut Field) -> usize {
    // Once there is a leader, the others are to follow it.
    field.ensemble.leader();
    let followers: Vec<_> =
        field.ensemble.followers().into_iter().map(|server| index(field, server)).collect();
    if followers.is_empty() { (leader(field) + 1) % 3 } else { field.dice.pick(&followers) }
}

fn paused(field: &mut Field, at: usize) -> io::Result<()> {
    field.ensemble.server(at).pause();
    let time = sessions(field, 5, 30);
    field.pass(time)?;
    field.ensemble.server(at).resume();
    mended(field);
    Ok(())
}

fn killed(field: &mut Field, at: usize) -> io::Result<()> {
    field.ensemble.server(at).kill();
    let time = sessions(field, 1, 15);
    field.pass(time)?;
    field.ensemble.server(at).start();
    mended(field);
    Ok(())
}

/// All servers serve again. Meanwhile the register keeps what it hears.
fn mended(field: &Field) {
    field.ensemble.wait_until_whole(MENDED);
}
