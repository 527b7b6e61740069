//! Faults of a group of clients, or of its connections to the servers. They come often, even while other groups or servers
//! have faults.

use std::io;
use std::time::{Duration, Instant};

use ground::wire::try_expire;
use ground::{Dice, Direction, Proxy, Server};

use crate::faults::{Fault, around, millis, sessions};
use crate::field::Field;
use crate::handover::{Struck, Whom};
use crate::report::now;
use crate::servers::Servers;
use crate::workers::Worker;

/// The consequences of a fault that has struck.
pub(crate) enum Course {
    Over,
    /// It lasts this long, and then is mended like this.
    Lasts(Duration, Mend),
    /// There was nothing that it could strike.
    Missed,
}

pub(crate) type Mend = Box<dyn FnOnce(&mut Field)>;

/// Strikes that group of clients.
pub(crate) type AtClients = fn(&mut Field, usize, &mut Dice) -> io::Result<Course>;

const fn fault(name: &'static str, strike: AtClients) -> Fault<AtClients> {
    Fault { name, is_served: false, strike }
}

/// One that needs an operator.
const fn by_operator(name: &'static str, strike: AtClients) -> Fault<AtClients> {
    Fault { name, is_served: true, strike }
}

pub(crate) const OF_CLIENTS: &[Fault<AtClients>] = &[
    fault("connections closed", |field, group, _| at_once(field, group, Proxy::cut)),
    fault("connections reset", |field, group, _| at_once(field, group, Proxy::reset)),
    fault("connections half open", |field, group, _| at_once(field, group, Proxy::half_open)),
    fault("requests frozen", |field, group, dice| frozen(field, group, dice, Direction::ToServer)),
    fault("replies frozen", |field, group, dice| frozen(field, group, dice, Direction::ToClient)),
    fault("both ways frozen", |field, group, dice| frozen(field, group, dice, Direction::Both)),
    fault("ways delayed", |field, group, dice| {
        let delay = millis(dice, 20, 400);
        field.groups[group].iter().for_each(|way| way.delay(delay));
        let mend =
            move |field: &mut Field| field.groups[group].iter().for_each(|way| way.delay(Duration::ZERO));
        Ok(Course::Lasts(sessions(dice, 5, 15), Box::new(mend)))
    }),
    fault("servers out of reach", |field, group, dice| {
        field.groups[group].iter().for_each(|way| way.refuse(true));
        field.groups[group].iter().for_each(Proxy::reset);
        let mend = move |field: &mut Field| field.groups[group].iter().for_each(|way| way.refuse(false));
        Ok(Course::Lasts(sessions(dice, 2, 15), Box::new(mend)))
    }),
    fault("client paused", |field, group, dice| {
        let Some(at) = client(field, group, dice) else { return Ok(Course::Missed) };
        let name = field.workers.running[at].name.clone();
        field.workers.running[at].pause();
        let mend = move |field: &mut Field| {
            let worker = field.workers.running.iter_mut().find(|worker| worker.name == name);
            worker.into_iter().for_each(Worker::resume);
        };
        Ok(Course::Lasts(sessions(dice, 5, 30), Box::new(mend)))
    }),
    fault("client killed", |field, group, dice| {
        let Some(at) = client(field, group, dice) else { return Ok(Course::Missed) };
        let worker = field.workers.kill(at)?;
        field.start(worker.program, worker.group, dice.throw())?;
        Ok(Course::Over)
    }),
    by_operator("session ended", |field, group, dice| {
        let address = field.servers.ensemble().leader_now().map(Server::address);
        let latest: Vec<_> = field.groups[group].iter().filter_map(|way| way.session().pop()).collect();
        let (Some(address), false) = (address, latest.is_empty()) else { return Ok(Course::Missed) };
        let (id, password, _) = dice.pick(&latest);
        // From here on the client creates no node that the judge does not know.
        field.groups[group].iter().for_each(|way| way.freeze(Direction::ToServer));
        field.pass(Duration::from_millis(100))?;
        let Some(admin) = field.servers.try_admin() else {
            field.groups[group].iter().for_each(Proxy::thaw);
            return Ok(Course::Missed);
        };
        // Leave out those that are gone by now.
        let owner = |node: &String| admin.try_stat(node).ok().flatten().map(|stat| stat.ephemeral_owner);
        let mut nodes = field.servers.contenders().unwrap_or_default();
        nodes.retain(|node| owner(node) == Some(id));
        take_away(field, nodes, |_| {
            // It may have ended by itself.
            let _ = try_expire(address, id, &password);
        });
        field.groups[group].iter().for_each(Proxy::thaw);
        Ok(Course::Over)
    }),
    by_operator("node deleted", |field, _, dice| {
        let Some(admin) = field.servers.try_admin() else { return Ok(Course::Missed) };
        let mut nodes = field.servers.contenders().unwrap_or_default();
        // The judge knows nodes by their names, and a single-node lock's node always has the same name.
        nodes.retain(|node| !node.ends_with("/lock") && !node.ends_with("-of-lock"));
        if nodes.is_empty() {
            return Ok(Course::Missed);
        }
        let node = dice.pick(&nodes);
        take_away(field, vec![node.clone()], |_| {
            // Its owner may have been quicker.
            let _ = admin.try_delete(&node);
        });
        Ok(Course::Over)
    }),
];

fn at_once(field: &Field, group: usize, strike: fn(&Proxy)) -> io::Result<Course> {
    field.groups[group].iter().for_each(strike);
    Ok(Course::Over)
}

fn frozen(field: &Field, group: usize, dice: &mut Dice, direction: Direction) -> io::Result<Course> {
    field.groups[group].iter().for_each(|way| way.freeze(direction));
    let mend = move |field: &mut Field| field.groups[group].iter().for_each(Proxy::thaw);
    Ok(Course::Lasts(sessions(dice, 1, 20), Box::new(mend)))
}

/// Picks a client of the group.
fn client(field: &Field, group: usize, dice: &mut Dice) -> Option<usize> {
    let running = field.workers.running.iter().enumerate();
    let of_group: Vec<_> = running.filter(|(_, worker)| worker.group == group).map(|(at, _)| at).collect();
    (!of_group.is_empty()).then(|| dice.pick(&of_group))
}

/// Deletes nodes, as an operator does, and then tells the judge when they were deleted.
fn take_away(field: &mut Field, nodes: Vec<String>, act: impl FnOnce(&Servers)) {
    let begin = now();
    act(&field.servers);
    let end = now();
    for node in nodes {
        // For readers of the log.
        let _ = field.register.note(&format!("{begin} {end} deletes {node}"));
        field.register.book.judge.deletes(node, begin, end);
    }
}

/// The source of client faults, with the faults that last now.
pub(crate) struct Swarm {
    dice: Dice,
    chosen: Vec<&'static Fault<AtClients>>,
    /// The average time from one fault to the next.
    pace: Duration,
    next: Instant,
    lasting: Vec<(Instant, usize, Mend)>,
    /// Faults that wait until the servers serve.
    put_off: Vec<&'static Fault<AtClients>>,
}

impl Swarm {
    /// A swarm of these faults, which may be none.
    pub(crate) fn new(seed: u64, chosen: Vec<&'static Fault<AtClients>>, pace: Duration) -> Self {
        let (next, lasting, put_off) = (Instant::now(), Vec::new(), Vec::new());
        Self { dice: Dice::new(!seed), chosen, pace, next, lasting, put_off }
    }

    /// Mends what is due, and strikes if it is time.
    pub(crate) fn go_on(&mut self, field: &mut Field) -> io::Result<()> {
        let time = Instant::now();
        let (due, lasting) =
            std::mem::take(&mut self.lasting).into_iter().partition(|(end, ..)| *end <= time);
        self.lasting = lasting;
        let due: Vec<(Instant, usize, Mend)> = due;
        due.into_iter().for_each(|(_, _, mend)| mend(field));
        if !field.servers_are_struck {
            if let Some(fault) = self.put_off.pop() {
                self.strike(field, fault)?;
            }
        }
        if time < self.next || self.chosen.is_empty() {
            return Ok(());
        }
        self.next = time + around(&mut self.dice, self.pace);
        let fault = self.dice.pick(&self.chosen);
        if fault.is_served && field.servers_are_struck {
            self.put_off.push(fault);
            return Ok(());
        }
        self.strike(field, fault)
    }

    /// Strikes a group that no other fault affects now.
    fn strike(&mut self, field: &mut Field, fault: &'static Fault<AtClients>) -> io::Result<()> {
        let is_free = |group: &usize| self.lasting.iter().all(|(_, struck, _)| struck != group);
        let free: Vec<usize> = (0..field.groups.len()).filter(is_free).collect();
        if free.is_empty() {
            return Ok(());
        }
        let (begin, group) = (now(), self.dice.pick(&free));
        field.register.note(&format!("{begin} {}", fault.name))?;
        let mut end = None;
        match (fault.strike)(field, group, &mut self.dice)? {
            Course::Missed => return Ok(()),
            Course::Over => {}
            Course::Lasts(time, mend) => {
                self.lasting.push((Instant::now() + time, group, mend));
                end = u64::try_from(time.as_nanos()).ok().map(|time| begin + time);
            }
        }
        let end = end.unwrap_or_else(now);
        let of_group = field.workers.running.iter().filter(|worker| worker.group == group);
        let mut workers: Vec<_> = of_group.map(|worker| worker.name.clone()).collect();
        for worker in &workers {
            field.register.book.judge.cuts_off(Some(worker), begin, end);
        }
        if fault.is_served {
            // The judge already knows whom an operator has struck.
            workers.clear();
        }
        field.struck.push(Struck { name: fault.name, whom: Whom::Clients(workers), begin, end });
        Ok(())
    }

    /// Ends the faults, and mends those that last.
    pub(crate) fn end(self, field: &mut Field) {
        self.lasting.into_iter().for_each(|(_, _, mend)| mend(field));
    }
}
