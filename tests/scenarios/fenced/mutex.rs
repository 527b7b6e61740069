//! Promise 2: a write guarded by a hold is done whole or not at all, and refused once the hold is lost.

use crate::support::{SOON, client, client_of, operator, proxied, proxied_client, says, soon};
use ground::{Action, Direction, Kind, Trigger, shared, until};
use std::time::Duration;
use zklock::{Client, ErrorKind, Hold, HoldState, LossReason};

async fn held(client: &Client, name: &str) -> (Hold, String) {
    let hold = soon(client.mutex(&format!("/fenced/{name}")).unwrap().acquire()).await.unwrap();
    (hold, format!("/fenced/{name}-state"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_write_is_done_while_the_lock_is_held() {
    let (client, operator) = (client().await, operator());
    let (hold, state) = held(&client, "done").await;
    let written = hold.guarded().create(&state, b"0").commit().await.unwrap();
    assert_eq!(written.versions(), [Some(0)]);
    let child = format!("{state}/child");
    let written = hold.guarded().set_data(&state, b"1", Some(0)).create(&child, b"c").commit().await.unwrap();
    assert_eq!(written.versions(), [Some(1), Some(0)]);
    assert_eq!((operator.data(&state), operator.data(&child)), (b"1".to_vec(), b"c".to_vec()));
    let written = hold.guarded().delete(&child, None).set_data(&state, b"2", None).commit().await.unwrap();
    assert_eq!(written.versions(), [None, Some(2)]);
    assert_eq!(written.versions()[1], Some(operator.stat(&state).unwrap().version));
    assert_eq!((operator.data(&state), operator.children(&state).len()), (b"2".to_vec(), 0));
    hold.release().await.unwrap();
    let refused = hold.guarded().set_data(&state, b"3", None).commit().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotHeld);
    assert_eq!(operator.data(&state), b"2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_write_is_done_whole_or_not_at_all() {
    let (client, operator) = (client().await, operator());
    let (hold, state) = held(&client, "whole").await;
    let other = format!("{state}-other");
    operator.create(&state, "before");
    operator.create(&format!("{state}-above"), "");
    let (above, below) = (&format!("{state}-above"), &format!("{state}-above/below"));
    operator.create(below, "");
    let lost = &format!("{other}/below");
    let is_written =
        "does not have the version 7: it has been written to, or was created again, so read it again";
    let is_there = "the node exists already: set its data, or delete it first";
    let leave_it_out = "the node does not exist, so leave this write out";
    let create_it = "the node does not exist: create it first";
    let create_that = &*format!("the node above it, {other}, does not exist: create that first");
    let has_children = "the node has children: delete those first";
    let writes = || hold.guarded();
    for (conflict, guarded, index, path) in [
        (is_written, writes().create(&other, b"").set_data(&state, b"after", Some(7)), 1, &state),
        (is_there, writes().set_data(&state, b"after", None).create(&state, b""), 1, &state),
        (is_written, writes().create(&other, b"").delete(&state, Some(7)), 1, &state),
        (leave_it_out, writes().set_data(&state, b"", None).delete(&other, None), 1, &other),
        (create_it, writes().set_data(&other, b"", None).set_data(&state, b"", None), 0, &other),
        (create_that, writes().create(lost, b""), 0, lost),
        (has_children, writes().delete(above, None), 0, above),
    ] {
        let error = soon(guarded.commit()).await.unwrap_err();
        let told = error.conflict().expect("it says which");
        assert_eq!((told.index, &*told.path), (index, path.as_str()), "{conflict}: {error}");
        says(&error, ErrorKind::Conflict, &[&format!("number {}, of {path}", index + 1), conflict]);
        assert!(operator.stat(&other).is_none(), "{conflict}");
        assert_eq!(operator.stat(&state).unwrap().version, 0, "{conflict}");
    }
    hold.release().await.expect("a conflict is not a loss");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_write_that_was_late_is_refused_after_the_next_has_the_lock() {
    let (operator, short) = (operator(), Duration::from_secs(1));
    let (client, proxy) = proxied(|options| options.session_timeout(short)).await;
    let (hold, state) = held(&client, "late").await;
    operator.create(&state, "before");
    proxy.freeze(Direction::Both);
    // A write that is on its way when the lock passes on.
    let write = hold.guarded().set_data(&state, b"stale", None).commit();
    let late = async {
        let (next, _) = held(&client_of(&shared().connect_string()).await, "late").await;
        assert!(hold.valid_for().is_zero());
        assert!(next.token() > hold.token());
        proxy.thaw();
        next
    };
    let (written, next) = soon(async { tokio::join!(Box::pin(write), Box::pin(late)) }).await;
    let kind = written.unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::Lost(_) | ErrorKind::Uncertain), "{kind:?}");
    assert!(soon(hold.lost()).await.unwrap().is_some());
    let refused = hold.guarded().set_data(&state, b"stale", None).commit().await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Lost(_)), "{refused}");
    operator.sync(&state);
    assert_eq!(operator.stat(&state).map(|stat| stat.version), Some(0), "something was written");
    next.guarded().set_data(&state, b"next", Some(0)).commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_write_whose_reply_is_lost_is_uncertain_and_a_read_tells_what_became_of_it() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let (hold, state) = held(&client, "uncertain").await;
    operator.create(&state, "");
    for (trigger, written) in [
        (Trigger::reply(Kind::Multi).then(Action::DropReplyAndReset), true),
        (Trigger::request(Kind::Multi).then(Action::DropAndReset), false),
    ] {
        let before = operator.stat(&state).unwrap().version;
        let hook = proxy.on(trigger.path(&state));
        let error = soon(hold.guarded().set_data(&state, b"x", None).commit()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Uncertain, "{error}");
        assert!(error.conflict().is_none());
        assert!(hook.wait(SOON), "the fault did not happen");
        let read = soon(hold.read(&state)).await.unwrap().unwrap().version;
        assert_eq!((read > before, read), (written, operator.stat(&state).unwrap().version));
    }
    soon(hold.confirm()).await.expect("the hold outlives a broken connection");
    hold.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guarded_writes_that_were_never_sent_are_not_uncertain() {
    let (client, proxy) = proxied_client().await;
    let hold = soon(client.mutex("/fenced-unsent").unwrap().acquire()).await.unwrap();
    let many = (0..10_000).fold(hold.guarded(), |writes, _| writes.delete("/a", None));
    let error = soon(many.commit()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "a server would hang up on so many: {error}");
    assert!(!hold.valid_for().is_zero());

    proxy.refuse(true);
    proxy.reset();
    assert!(until(SOON, || hold.state() == HoldState::AtRisk));
    let error = soon(hold.guarded().create("/fenced-unsent-write", b"").commit()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::LeaseLapsed), "{error}");
    assert!(operator().stat("/fenced-unsent-write").is_none());
}
