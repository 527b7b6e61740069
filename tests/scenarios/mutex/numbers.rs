//! When the sequence numbers of a directory come to their end, there is still only one holder at a time, and it goes on.

use crate::support::queue::acquire;
use crate::support::{SESSION, SOON, client_of, says, settled, soon};
use ground::wire::{Admin, Mode};
use ground::{Ensemble, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zklock::{Client, ErrorKind, Lock};

/// The first number at which no lock is granted.
const END: i32 = i32::MAX - (1 << 20) + 1;
const PATH: &str = "/locks/report";

/// A server with a directory whose next number is this one.
fn near_the_end(number: i32, data: &str) -> Ensemble {
    let ensemble = Ensemble::builder().tick(Duration::from_millis(200)).real().start();
    let server = ensemble.server(0);
    Admin::connect(server.address()).create_all(PATH, data);
    server.set_sequence(PATH, number);
    ensemble
}

fn operator(server: &Server) -> Admin {
    Admin::connect(server.address())
}

async fn clients(ensemble: &Ensemble, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(client_of(&ensemble.connect_string()).await);
    }
    clients
}

/// The number of current holders, and how often the lock was held.
#[derive(Default)]
struct Ledger {
    holders: AtomicUsize,
    grants: AtomicUsize,
}

async fn take_turns(lock: Lock, ledger: Arc<Ledger>, rounds: usize) {
    for _ in 0..rounds {
        let hold = lock.acquire_timeout(Duration::from_secs(60)).await.unwrap();
        assert_eq!(ledger.holders.fetch_add(1, Ordering::SeqCst), 0, "two hold it at once");
        ledger.grants.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        ledger.holders.fetch_sub(1, Ordering::SeqCst);
        hold.release().await.unwrap();
    }
}

/// Eight clients take turns in a directory whose next number is this one.
async fn contest(number: i32) {
    let ensemble = near_the_end(number, "");
    let ledger = Arc::<Ledger>::default();
    let mut tasks = Vec::new();
    let clients = clients(&ensemble, 8).await;
    for client in &clients {
        let lock = client.mutex(PATH).unwrap();
        tasks.push(tokio::spawn(take_turns(lock, ledger.clone(), 20)));
    }
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(120), task).await.expect("it goes on").unwrap();
    }
    assert_eq!(ledger.grants.load(Ordering::SeqCst), 160);
    for client in &clients {
        settled(client).await;
    }
    operator(ensemble.server(0)).wait_for_children(PATH, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_take_turns_over_the_last_of_the_numbers_that_are_used() {
    contest(END - 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_take_turns_in_a_directory_whose_counter_sticks() {
    contest(i32::MAX - 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_enters_a_new_directory_while_a_contender_of_any_library_is_left_in_the_old() {
    let ensemble = near_the_end(END - 1, "");
    let operator = operator(ensemble.server(0));
    let curator = operator.create_mode(&format!("{PATH}/_c_other-lock-"), "", Mode::EphemeralSequential);
    assert!(curator.ends_with(&(END - 1).to_string()), "{curator}");
    let clients = clients(&ensemble, 2).await;
    let (tries, waits) = (clients[0].mutex(PATH).unwrap(), clients[1].mutex(PATH).unwrap());
    assert!(soon(tries.try_acquire()).await.unwrap().is_none(), "another holds it");
    let waiting = acquire(&waits);
    let behind = operator.create_mode(&format!("{PATH}/_c_another-lock-"), "", Mode::EphemeralSequential);
    operator.delete(&curator);
    // The contender of another library holds now, and does not know our rule.
    assert!(soon(tries.try_acquire()).await.unwrap().is_none(), "another holds it");
    assert!(!waiting.is_finished());
    operator.delete(&behind);
    let hold = soon(waiting).await.unwrap().unwrap();
    assert!(hold.node().ends_with("-0000000000"), "{}", hold.node());
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_says_something_is_left_to_the_operator() {
    let ensemble = near_the_end(END, "kept");
    let client = client_of(&ensemble.connect_string()).await;
    let lock = client.mutex(PATH).unwrap();
    let error = soon(lock.acquire_timeout(SESSION)).await.unwrap_err();
    says(&error, ErrorKind::Refused, &[PATH, "sequence numbers", "delete that node"]);
    settled(&client).await;
    let operator = operator(ensemble.server(0));
    assert_eq!((operator.data(PATH), operator.children(PATH)), (b"kept".to_vec(), Vec::new()));
    operator.delete(PATH);
    soon(lock.acquire_timeout(SESSION)).await.unwrap().release().await.unwrap();
}
