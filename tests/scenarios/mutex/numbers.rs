//! When the sequence numbers of a directory come to their end, there is still only one holder at a time, and it goes on.

use crate::support::register::clients;
use crate::support::{SESSION, acquire, client_of, says, settled, soon};
use ground::Ensemble;
use ground::wire::{Admin, Mode};
use std::time::Duration;
use zklock::ErrorKind;

/// The first number at which no lock is granted.
const END: i32 = i32::MAX - (1 << 20) + 1;
const PATH: &str = "/locks/report";

/// A server with a directory whose next number is this one, and its operator.
fn near_the_end(number: i32, data: &str) -> (Ensemble, Admin) {
    let ensemble = Ensemble::builder().tick(Duration::from_millis(200)).real().start();
    let server = ensemble.server(0);
    let operator = Admin::connect(server.address());
    operator.create_all(PATH, data);
    server.set_sequence(PATH, number);
    (ensemble, operator)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_enters_a_new_directory_while_a_contender_of_any_library_is_left_in_the_old() {
    let (ensemble, operator) = near_the_end(END - 1, "");
    let curator = operator.create_mode(&format!("{PATH}/_c_other-lock-"), "", Mode::EphemeralSequential);
    assert!(curator.ends_with(&(END - 1).to_string()), "{curator}");
    let clients = clients(&ensemble.connect_string(), 2).await;
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
    let (ensemble, operator) = near_the_end(END, "kept");
    let client = client_of(&ensemble.connect_string()).await;
    let lock = client.mutex(PATH).unwrap();
    let error = soon(lock.acquire_timeout(SESSION)).await.unwrap_err();
    says(&error, ErrorKind::Refused, &[PATH, "sequence numbers", "delete that node"]);
    settled(&client).await;
    assert_eq!((operator.data(PATH), operator.children(PATH)), (b"kept".to_vec(), Vec::new()));
    operator.delete(PATH);
    soon(lock.acquire_timeout(SESSION)).await.unwrap().release().await.unwrap();
}
