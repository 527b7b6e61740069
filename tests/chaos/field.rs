//! The servers, the ways to them, the workers and the register: everything that a fault can strike, or that observes its effects.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use ground::{Dice, Proxy, connect_string};

use crate::handover::{Struck, Whom};
use crate::judge::SESSION;
use crate::register::Register;
use crate::report::now;
use crate::servers::Servers;
use crate::swarm::Swarm;
use crate::workers::{PLACES, Program, Workers};

/// The file in a server's folder that tells disk.c what to do.
pub(crate) const DISK: &str = "disk";
/// The file in a server's folder that tells date.c by how many seconds its date is wrong.
pub(crate) const DATE: &str = "date";
/// Workers that share a way to the servers.
const GROUPS: usize = 12;
/// How often the workers' reports are judged.
const PAUSE: Duration = Duration::from_millis(100);
/// If something takes this much longer than it should, the machine was too slow.
const STALL: Duration = Duration::from_millis(100);

pub(crate) struct Field {
    pub(crate) servers: Servers,
    /// For each group, a way to each server.
    pub(crate) groups: Vec<Vec<Proxy>>,
    pub(crate) workers: Workers,
    pub(crate) register: Register,
    pub(crate) dice: Dice,
    /// The faults that may strike while time passes.
    pub(crate) swarm: Option<Swarm>,
    /// Whether a fault of the servers lasts.
    pub(crate) servers_are_struck: bool,
    pub(crate) struck: Vec<Struck>,
    /// When this machine was so slow that it counts as a fault.
    pub(crate) stalls: Vec<Struck>,
    pub(crate) troubles: Vec<String>,
}

impl Field {
    pub(crate) fn open(folder: &Path, seed: u64, servers: Servers) -> io::Result<Self> {
        let groups: Vec<Vec<Proxy>> = (0..GROUPS).map(|_| servers.ways()).collect();
        let register = Register::open(&folder.join("claims.log"))?;
        let workers = Workers::new(register.address, SESSION, folder);
        let mut field = Self {
            servers,
            groups,
            workers,
            register,
            dice: Dice::new(seed),
            swarm: None,
            servers_are_struck: false,
            struck: Vec::new(),
            stalls: Vec::new(),
            troubles: Vec::new(),
        };
        field.prepare();
        Ok(field)
    }

    /// Creates the paths as nodes that stay. Servers delete empty containers, and then sequence numbers would start again.
    fn prepare(&mut self) {
        let admin = self.servers.admin();
        for (place, _) in PLACES {
            admin.create(&format!("/{place}"), b"");
        }
    }

    pub(crate) fn start(&mut self, program: &'static Program, group: usize, seed: u64) -> io::Result<()> {
        let hosts = connect_string(self.groups[group].iter().map(Proxy::address));
        self.workers.start(program, &hosts, group, seed)
    }

    /// Lets time pass, during which the register judges the workers' reports and client faults strike.
    pub(crate) fn pass(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            let begin = now();
            let took = self.register.judge()?;
            self.watch_machine(begin, took, Duration::ZERO);
            let ended = self.workers.ended();
            self.troubles.extend(ended);
            // A fault may itself let time pass, and then no other fault strikes.
            if let Some(mut swarm) = self.swarm.take() {
                let gone_on = swarm.go_on(self);
                self.swarm = Some(swarm);
                gone_on?;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let (begin, rested, rest) = (now(), Instant::now(), left.min(PAUSE));
            std::thread::sleep(rest);
            self.watch_machine(begin, rested.elapsed(), rest);
        }
    }

    fn watch_machine(&mut self, begin: u64, took: Duration, should: Duration) {
        if took > should + STALL {
            let (name, whom) = ("machine held up", Whom::Machine);
            self.stalls.push(Struck { name, whom, begin, end: now() });
        }
    }
}
