//! Work without requests, measured with criterion: the algorithm alone, and with `ZKLOCK_BENCH_HOSTS` the work of a client by
//! itself.
//!
//! Run by `tests/bench/run --micro`. Further arguments, for example `--quick` or a name, are criterion's.

use criterion::Criterion;
use std::hint::black_box;
use std::time::Duration;
use zklock::{Client, ClientOptions, Hold, LockSpec};
use zklock_machine::Moment;
use zklock_machine::claim::Claim;
use zklock_machine::contender::Contender;
use zklock_machine::drive::Machine;
use zklock_machine::name::{Scheme, Uuid};
use zklock_machine::protocol::{Node, Now, Operation, Origin, Outcome, Patience, Verdict};
use zklock_machine::queue::standing;

const SESSION: i64 = 7;
const HEARTBEAT: Duration = Duration::from_secs(2);
const NEEDS: Duration = Duration::from_secs(1);

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    machine(&mut criterion);
    match std::env::var("ZKLOCK_BENCH_HOSTS") {
        Ok(hosts) => {
            tasks(&mut criterion, &hosts);
            threads(&mut criterion, &hosts);
        }
        Err(_) => eprintln!("ZKLOCK_BENCH_HOSTS names no server: only the algorithm was measured"),
    }
    criterion.final_summary();
}

/// The algorithm of one free acquire and its release, with answers that come at once.
fn free(mark: u128) -> usize {
    let now = |millis| {
        let moment = Moment::at(Duration::from_millis(millis));
        Now { moment, lease_until: Moment::at(Duration::from_millis(millis + 10_000)) }
    };
    let mut contender = Contender::new(vec![Claim::new("/locks/a", Scheme::Mutex)], Patience::Waits);
    contender.handle_session(SESSION, HEARTBEAT, Uuid::from_random(mark));
    let mut flights = 0;
    while !contender.is_gone() {
        if let Some(flight) = contender.poll_flight() {
            let outcomes = flight.iter().map(|operation| outcome(operation, contender.mark())).collect();
            contender.handle_replies(outcomes, now(flights).moment, now(flights + 1));
            flights += 1;
        }
        if let Some(Verdict::Granted { .. }) = contender.poll_verdict() {
            contender.handle_end();
        }
    }
    usize::try_from(flights).unwrap_or(0)
}

fn outcome(operation: &Operation, mark: Uuid) -> Outcome {
    let name = format!("{}0000000000", Scheme::Mutex.prefix(mark, SESSION));
    match operation {
        Operation::Create(_) => {
            Outcome::Created(vec![Node { name, origin: Some(Origin { czxid: 1, session: SESSION }) }])
        }
        Operation::List { .. } => Outcome::Children(vec![name]),
        _ => Outcome::Done,
    }
}

fn machine(criterion: &mut Criterion) {
    let mut mark = 0;
    criterion.bench_function("machine: free acquire and release", |bencher| {
        bencher.iter(|| {
            mark += 1;
            free(black_box(mark))
        });
    });
    let claim = Claim::new("/locks/a", Scheme::Mutex);
    let child =
        |number: u128| format!("{}{number:010}", Scheme::Mutex.prefix(Uuid::from_random(number), SESSION));
    let children: Vec<_> = (0..1_000).map(child).collect();
    criterion.bench_function("machine: where the last of 1,000 stands", |bencher| {
        bencher.iter(|| standing(black_box(&children), &children[999], &claim) == standing(&[], "", &claim));
    });
}

fn options(hosts: &str) -> ClientOptions {
    ClientOptions::new(hosts)
}

fn reentrant() -> LockSpec {
    LockSpec::mutex("/micro/reentrant").expect("a path").reentrant(true)
}

fn lingering() -> LockSpec {
    LockSpec::mutex("/micro/lingering").expect("a path").linger(Duration::from_secs(60))
}

fn plain() -> LockSpec {
    LockSpec::mutex("/micro/plain").expect("a path")
}

fn tasks(criterion: &mut Criterion, hosts: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(Client::connect(options(hosts))).expect("a client");
    let measured = [("lingering", lingering()), ("reentrant", reentrant())];
    for (name, spec) in measured {
        let lock = client.lock(&spec).expect("a lock");
        criterion.bench_function(&format!("task: {name} acquire and release"), |bencher| {
            bencher.iter_custom(|count| {
                runtime.block_on(async {
                    let outer = lock.acquire().await.expect("a hold");
                    if name == "lingering" {
                        outer.release().await.expect("released");
                    }
                    let start = std::time::Instant::now();
                    for _ in 0..count {
                        lock.acquire().await.expect("a hold").release().await.expect("released");
                    }
                    start.elapsed()
                })
            });
        });
    }
    let lock = client.lock(&plain()).expect("a lock");
    let looks: [(&str, fn(&Hold)); 2] = [
        ("valid_for", |hold| {
            black_box(hold.valid_for());
        }),
        ("ensure", |hold| hold.ensure(black_box(NEEDS)).expect("held")),
    ];
    for (name, look) in looks {
        criterion.bench_function(&format!("task: {name}"), |bencher| {
            bencher.iter_custom(|count| {
                runtime.block_on(async {
                    // For each batch, since nothing proves it while this thread does not await.
                    let hold = lock.acquire().await.expect("a hold");
                    let start = std::time::Instant::now();
                    for _ in 0..count {
                        look(&hold);
                    }
                    let took = start.elapsed();
                    hold.release().await.expect("released");
                    took
                })
            });
        });
    }
    runtime.block_on(client.close()).expect("closed");
}

fn threads(criterion: &mut Criterion, hosts: &str) {
    let client = Client::connect(options(hosts)).wait().expect("a client");
    for (name, spec) in [("lingering", lingering()), ("reentrant", reentrant())] {
        let lock = client.lock(&spec).expect("a lock");
        let outer = lock.acquire().wait().expect("a hold");
        if name == "lingering" {
            outer.release().wait().expect("released");
        }
        criterion.bench_function(&format!("thread: {name} acquire and release"), |bencher| {
            bencher.iter(|| lock.acquire().wait().expect("a hold").release().wait().expect("released"));
        });
    }
    let hold = client.lock(&plain()).expect("a lock").acquire().wait().expect("a hold");
    criterion.bench_function("thread: valid_for", |bencher| bencher.iter(|| hold.valid_for()));
    criterion.bench_function("thread: ensure", |bencher| {
        bencher.iter(|| hold.ensure(black_box(NEEDS)).expect("held"));
    });
    hold.release().wait().expect("released");
    client.close().wait().expect("closed");
}
