//! One run: a plan, the servers, the clients, and the outcome.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use ground::Dice;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use zklock::Client;

use crate::actors::{Stage, act, is_of_lock, options};
use crate::claims::Claims;
use crate::faults::{CLIENT_KILLED, DELETIONS_LOST, Faults};
use crate::network::{Network, open_all};
use crate::plan::{Plan, SERVERS, TICK};
use crate::replicas::{Replicas, Timing};
use crate::rounds;
use crate::writes::{STATE, Writes};

/// Tasks of each client.
const TASKS: usize = 2;
/// One of so many seeds has a double barrier.
const ROUNDS: u64 = 3;
/// How long a client may have to wait after the last fault: for sessions to end, an election, and others' turns.
const CALM: Duration = Duration::from_secs(40);
/// How long the last nodes, watches and sessions may stay after the end.
const LEFT: Duration = Duration::from_secs(15);

/// The outcome of a run.
pub(crate) struct Outcome {
    pub(crate) grants: u64,
    pub(crate) lost: u64,
    pub(crate) requests: u64,
    pub(crate) simulated: Duration,
    pub(crate) trace: u64,
    pub(crate) troubles: Vec<String>,
}

/// Runs everything in one thread. All chance comes from the seed.
pub(crate) fn run(seed: u64, without: &[usize]) -> Outcome {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    #[cfg(tokio_unstable)]
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_be_bytes()));
    let runtime = builder.enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, play(seed, without))
}

async fn play(seed: u64, without: &[usize]) -> Outcome {
    let plan = Plan::new(seed, without);
    let timing = Timing {
        tick: TICK,
        limit: plan.limit,
        sessions: (TICK * 2, TICK * 20),
        reaping: Duration::from_secs(7),
        second: plan.second,
    };
    let mut chances = Dice::new(seed ^ 0x5e_a1ed);
    let throw = Box::new(move |bound| chances.throw() % bound);
    let mut replicas = Replicas::new(SERVERS, timing, throw);
    replicas.place(STATE);
    let network = Network::new(replicas, Dice::new(seed ^ 0x1a6));
    let stage = Rc::new(Stage {
        network: network.clone(),
        faults: RefCell::default(),
        claims: RefCell::new(Claims::default()),
        is_calm: Cell::new(false),
        is_over: Cell::new(false),
        troubles: RefCell::default(),
        served: RefCell::default(),
        lost: Cell::new(0),
        writes: Writes::default(),
        rounds: RefCell::default(),
        // A member waits for another whose node a server still shows.
        has_rounds: seed % ROUNDS == 0
            && plan.strokes.iter().all(|stroke| stroke.fault.name != DELETIONS_LOST),
        numbers: RefCell::default(),
        locks: plan.locks.clone(),
    });
    let keeper = spawn_local(keep_time(stage.clone()));
    let mut cast = Cast { stage: stage.clone(), members: Vec::new(), last: 0 };
    for client in 0..plan.clients {
        cast.enter(client, seed).await;
    }
    stage.faults.replace(Faults::new(&plan.strokes));
    network.borrow().stir.notify_one();
    for stroke in plan.strokes.iter().filter(|stroke| stroke.fault.name == CLIENT_KILLED) {
        stage.sleep_until(stroke.at).await;
        cast.replace(stroke.client, seed ^ stroke.choice).await;
    }
    stage.sleep_until(plan.end + Duration::from_millis(1)).await;
    cast.end().await;
    keeper.abort();
    let claims = stage.claims.take();
    let troubles = claims.violations.into_iter().chain(stage.troubles.take()).collect();
    let network = network.borrow();
    Outcome {
        grants: claims.grants,
        lost: stage.lost.get(),
        requests: network.requests,
        simulated: network.now(),
        trace: network.trace(),
        troubles,
    }
}

/// The timekeeper: does the work that is due, and checks the clients' claims after each step.
async fn keep_time(stage: Rc<Stage>) {
    let stir = stage.network.borrow().stir.clone();
    loop {
        let next = stage.network.borrow().instant(stage.next());
        tokio::select! {
            biased;
            () = stir.notified() => {}
            () = tokio::time::sleep_until(next) => {}
        }
        stage.step();
        // While clients are stopped, no other task runs. Then everything that has come meanwhile meets them at once.
        loop {
            let (now, stopped) = (stage.now(), stage.faults.borrow().stopped());
            if now >= stopped {
                break;
            }
            std::thread::sleep(stage.next().min(stopped).saturating_sub(now));
            stage.step();
        }
    }
}

/// The living clients.
struct Cast {
    stage: Rc<Stage>,
    members: Vec<Member>,
    /// The number of the latest client.
    last: usize,
}

struct Member {
    client: Client,
    names: Vec<String>,
    tasks: Vec<JoinHandle<()>>,
}

impl Cast {
    /// Adds a new client at this place.
    async fn enter(&mut self, place: usize, seed: u64) {
        self.last += 1;
        let (number, stage) = (self.last, &self.stage);
        open_all(&stage.network, number, true);
        let client = loop {
            // While servers are down this may take several tries.
            match Client::connect(options(number).expect("good options")).await {
                Ok(client) => break client,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        };
        let mut names: Vec<_> = (0..TASKS).map(|task| format!("client {number}, task {task}")).collect();
        let task = |(task, name): (usize, &String)| {
            let dice = Dice::new(seed ^ ((number * TASKS + task + 1) as u64) << 32);
            spawn_local(act(stage.clone(), client.clone(), number, name.clone(), dice))
        };
        let mut tasks: Vec<_> = names.iter().enumerate().map(task).collect();
        if place < rounds::MEMBERS && stage.has_rounds {
            let (name, dice) = (format!("client {number}, rounds"), Dice::new(seed ^ (number as u64) << 48));
            tasks.push(spawn_local(rounds::act(stage.clone(), client.clone(), name.clone(), dice)));
            names.push(name);
        }
        stage.numbers.borrow_mut().insert(place, number);
        self.members.insert(place, Member { client, names, tasks });
    }

    /// Kills a client, and lets another one take its place.
    async fn replace(&mut self, place: usize, seed: u64) {
        let dead = self.members.remove(place);
        let (network, number) = (&self.stage.network, self.stage.numbers.borrow_mut().remove(place));
        // Nothing that it still sends reaches anybody, and the servers are not told of its end.
        open_all(network, number, false);
        network.borrow_mut().cut(number, false);
        self.stage.claims.borrow_mut().forget(number);
        for task in dead.tasks {
            task.abort();
            let _ = task.await;
        }
        drop(dead.client);
        self.enter(place, seed).await;
    }

    /// After the faults: every task gets a lock, and in the end nothing is left.
    async fn end(self) {
        let stage = &self.stage;
        stage.is_calm.set(true);
        let names: Vec<_> = self.members.iter().flat_map(|member| &member.names).collect();
        let all_served = async || names.iter().all(|name| stage.served.borrow().contains(name));
        if !within(CALM, all_served).await {
            let is_starved = |name: &&&String| !stage.served.borrow().contains(name);
            let starved: Vec<_> = names.iter().filter(is_starved).collect();
            stage.trouble(&format!("had nothing for {CALM:?}: {starved:?}"));
        }
        stage.is_over.set(true);
        for member in self.members {
            for task in member.tasks {
                if timeout(CALM, task).await.is_err() {
                    stage.trouble("a task does not end");
                }
            }
            if timeout(CALM, member.client.close()).await.is_err() {
                stage.trouble("a client does not close");
            }
        }
        let left = || {
            let network = stage.network.borrow();
            let nodes = network.replicas.nodes().into_iter().filter(|path| is_of_lock(path));
            (nodes.collect::<Vec<_>>(), network.replicas.sessions(), network.replicas.watches())
        };
        let all_gone = async || left() == (Vec::new(), Vec::new(), 0);
        if !within(LEFT, all_gone).await {
            stage.trouble(&format!("nodes, sessions or watches are left behind: {:?}", left()));
        }
    }
}

/// Whether the condition becomes true in time.
async fn within(limit: Duration, is_so: impl AsyncFn() -> bool) -> bool {
    let waits = async {
        while !is_so().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(limit, waits).await.is_ok()
}
