use super::*;
use crate::hold::grant::Granter;
use crate::machine::callers::TurnId;
use crate::machine::keeper::Keeper;
use crate::session::fake::{FakeEnsemble, TIMEOUT, with_ensemble, with_hold, with_session};
use crate::session::nodes::SessionNodes;
use crate::session::session::Notice;
use crate::session::session::Session;
use crate::session::slot::{Slot, SlotState};
use futures_util::FutureExt;
use std::cell::Cell;
use std::future::ready;
use std::sync::Weak;

/// Nobody reads the state twice at a time: between the two, a writer that waits would be in the way of the second.
#[test]
fn threads_that_learn_of_a_loss_are_not_in_the_way_of_the_session() {
    const TIMES: usize = 20_000;
    with_hold(async |_, session, hold| {
        let holding = hold.grant().holding().clone();
        session.lose(&holding, LossReason::NodeDeleted);
        let (sender, done) = std::sync::mpsc::channel();
        for _ in 0..3 {
            let (loss, sender) = (hold.loss(), sender.clone());
            std::thread::spawn(move || {
                for _ in 0..TIMES {
                    assert_eq!(loss.clone().come().now_or_never(), Some(Some(LossReason::NodeDeleted)));
                }
                sender.send(()).unwrap();
            });
        }
        std::thread::spawn(move || {
            (0..TIMES).for_each(|at| holding.set_wanted(at % 2 == 0));
            sender.send(()).unwrap();
        });
        for _ in 0..4 {
            done.recv_timeout(Duration::from_secs(60)).expect("nobody waits for ever");
        }
    });
}

#[test]
fn a_hold_is_ensured_for_as_long_as_its_lease_and_a_margin() {
    with_hold(async |ensemble, session, hold| {
        let refusal = |needs| hold.ensure(needs).unwrap_err();
        // To ask again would help nobody who needs more than a lease ever has.
        let longest = hold.confirm().await.unwrap();
        assert_eq!(hold.ensure(longest - TIMEOUT / 100), Ok(()));
        let more = longest - TIMEOUT / 100 + Duration::from_millis(1);
        assert_eq!(refusal(more).kind(), ErrorKind::InvalidInput);
        ensemble.fall_silent();
        clock::sleep(Duration::from_secs(2)).await;
        assert_eq!(refusal(longest - TIMEOUT / 100).kind(), ErrorKind::AtRisk, "it had that");
        let covered = hold.valid_for() - TIMEOUT / 100;
        assert_eq!(hold.ensure(covered), Ok(()));
        let short = refusal(covered + Duration::from_millis(1));
        assert_eq!(short.kind(), ErrorKind::AtRisk, "{short}");
        for never in [TIMEOUT / 2, Duration::MAX] {
            assert_eq!(refusal(never).kind(), ErrorKind::InvalidInput);
        }
        clock::sleep(covered).await;
        assert_eq!(hold.ensure(Duration::ZERO), Ok(()));
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(refusal(Duration::ZERO).kind(), ErrorKind::AtRisk);
        session.lose(hold.grant().holding(), LossReason::LeaseLapsed);
        assert_eq!(refusal(Duration::ZERO).kind(), ErrorKind::Lost(LossReason::LeaseLapsed));
        hold.let_go();
        assert_eq!(refusal(Duration::ZERO).kind(), ErrorKind::NotHeld);
    });
}

/// Notes that it was dropped.
struct Dropped<'a>(&'a Cell<bool>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn work_ends_with_the_hold_that_it_is_run_by() {
    with_hold(async |ensemble, session, hold| {
        let holding = hold.grant().holding().clone();
        assert_eq!(hold.run(ready(7)).await, Ok(7));
        let is_dropped = Cell::new(false);
        let endless = async {
            let _dropped = Dropped(&is_dropped);
            std::future::pending::<()>().await;
        };
        let lose = async {
            clock::sleep(Duration::from_secs(1)).await;
            assert!(!is_dropped.get());
            session.lose(&holding, LossReason::NodeDeleted);
        };
        assert_eq!(tokio::join!(hold.run(endless), lose).0, Err(LossReason::NodeDeleted));
        assert!(is_dropped.get());
        // What has not begun does not begin.
        assert_eq!(hold.run(async { unreachable!() }).await, Err::<(), _>(LossReason::NodeDeleted));

        let released = ensemble.hold(&session, "/b", Owner::unique());
        let work = async {
            released.let_go();
            clock::sleep(Duration::from_secs(1)).await;
        };
        assert_eq!(released.run(work).await, Ok(()));
    });
}

#[test]
fn a_confirm_gives_up_when_the_lease_is_over() {
    with_hold(async |ensemble, session, hold| {
        let start = clock::now();
        assert!(hold.confirm().await.unwrap() > TIMEOUT / 3);
        ensemble.fall_silent();
        let lease = session.now().lease_until.since(start);
        assert_eq!(hold.confirm().await.unwrap_err().kind(), ErrorKind::Unreachable);
        assert_eq!(clock::now().since(start), lease);
    });
}

#[test]
fn a_confirm_believes_nothing_but_an_answer() {
    with_hold(async |ensemble, _, hold| {
        ensemble.be_unsure_of(1);
        let asked = ensemble.checks().len();
        assert!(hold.confirm().await.unwrap() > TIMEOUT / 3);
        assert_eq!(ensemble.checks().len(), asked + 2, "it asks again if the first answer was lost");
        ensemble.be_unsure_of(2);
        assert!(!hold.valid_for().is_zero());
        assert_eq!(hold.confirm().await.unwrap_err().kind(), ErrorKind::Unreachable);
    });
}

#[test]
fn a_hold_names_its_lock() {
    with_hold(async |_, _, hold| {
        assert_eq!(hold.path(), "/a");
        assert!(
            format!("{hold:?}")
                .starts_with(&format!("Hold {{ node: {:?}, token: 1, state: Held", hold.node()))
        );
    });
}

#[test]
fn a_hold_of_a_reentrant_lock_is_released_by_its_owner_alone() {
    with_ensemble(async |ensemble| {
        let owner = Owner::unique();
        let hold = Hold::new(ensemble.grant(&ensemble.session(), "/a", owner, true));
        let refused = hold.begin_release(Owner::unique()).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotOwner);
        assert_eq!((hold.state(), hold.is_released()), (HoldState::Held, false), "nothing changes");
        assert!(hold.begin_release(owner).unwrap().is_some());
        assert_eq!(hold.state(), HoldState::Released);
    });
}

/// The outcome of a release that is under way while its session ends, and another one follows. `end` may do something
/// later.
fn kind_after<F: Future<Output = ()> + 'static>(
    end: impl FnOnce(FakeEnsemble, Arc<Session>, String) -> F,
) -> Result<(), ErrorKind> {
    with_hold(async |ensemble, session, hold| {
        let release = hold.begin_release(Owner::current()).unwrap().unwrap();
        let later = end(ensemble.clone(), session.clone(), hold.node().to_owned());
        // The pool, and the attempt that owns the node, do this then.
        hold.grant().slot.set(SlotState::Open(ensemble.session()));
        hold.grant().holding().end(None, session.loss());
        let (released, ()) = tokio::join!(release, later);
        released.map_err(|error| error.kind())
    })
}

#[test]
fn a_release_is_confirmed_by_the_end_of_the_session_only_if_the_servers_have_said_so() {
    let closed = |nodes| {
        kind_after(move |_, session, _| {
            session.end(LossReason::SessionClosed);
            session.set_nodes(nodes);
            ready(())
        })
    };
    assert_eq!(closed(SessionNodes::Gone), Ok(()));
    assert_eq!(closed(SessionNodes::Abandoned), Err(ErrorKind::Unreachable));
    let abandoned = kind_after(|_, session, _| {
        session.abandon_nodes();
        ready(())
    });
    assert_eq!(abandoned, Err(ErrorKind::Unreachable));
}

#[test]
fn a_release_is_not_confirmed_by_the_word_of_one_server_while_its_node_is_there() {
    let deleted_after = |time: Duration| {
        kind_after(move |ensemble, session, node| {
            session.end(LossReason::SessionExpired);
            async move {
                clock::sleep(time).await;
                assert!(ensemble.delete_node(&node));
            }
        })
    };
    assert_eq!(deleted_after(Duration::ZERO), Ok(()));
    assert_eq!(deleted_after(TIMEOUT / 2), Ok(()));
    assert_eq!(deleted_after(2 * TIMEOUT), Err(ErrorKind::Timeout));
}

#[test]
fn a_release_of_what_was_not_valid_any_more_says_at_once_that_it_is_lost() {
    with_hold(async |ensemble, session, hold| {
        clock::sleep(TIMEOUT).await;
        assert!(hold.valid_for().is_zero());
        let release = hold.begin_release(Owner::current()).unwrap().unwrap();
        session.end(LossReason::SessionExpired);
        hold.grant().slot.set(SlotState::Open(ensemble.session()));
        hold.grant().holding().end(None, session.loss());
        let before = clock::now();
        let lost = ErrorKind::Lost(LossReason::SessionExpired);
        assert_eq!(release.await.unwrap_err().kind(), lost);
        assert_eq!(clock::now(), before);
    });
}

/// Keeps every node for the next holder.
struct Keeps;

impl Granter for Keeps {
    fn take_back(&self, _: TurnId, grant: &Grant) -> ReleaseOutcome {
        grant.set_unused();
        ReleaseOutcome::PassedOn
    }
}

fn weak(granter: &Arc<impl Granter + 'static>) -> Weak<dyn Granter> {
    Arc::downgrade(&(granter.clone() as Arc<dyn Granter>))
}

#[test]
fn a_node_that_is_kept_for_the_next_holder_is_none_of_the_last_holders_business() {
    with_session(async |ensemble, session| {
        let (owner, keeps) = (Owner::unique(), Arc::new(Keeps));
        let grant = ensemble.grant_by(&session, "/a", owner, false, weak(&keeps));
        let hold = Hold::new(grant.clone());
        let loss = hold.loss();
        assert!(grant.has_holds());
        assert!(hold.begin_release(owner).unwrap().is_none(), "nothing to wait for");
        assert_eq!(ensemble.checks(), []);
        assert!(grant.holding().status() == Status::Held && !grant.has_holds());
        assert_eq!((hold.state(), hold.valid_for()), (HoldState::Released, Duration::ZERO));
        assert_eq!(hold.confirm().await.unwrap_err().kind(), ErrorKind::NotHeld);
        session.lose(grant.holding(), LossReason::NodeDeleted);
        assert_eq!((hold.state(), loss.reason(), loss.come().await), (HoldState::Released, None, None));
    });
}

#[test]
fn a_node_is_passed_on_after_a_lapse_only_if_the_servers_confirm_it() {
    with_ensemble(async |ensemble| {
        let keeps = Arc::new(Keeps);
        let hold =
            |session| Hold::new(ensemble.grant_by(session, "/a", Owner::unique(), false, weak(&keeps)));
        let session = ensemble.session();
        let (good, deleted) = (hold(&session), hold(&session));
        clock::sleep(TIMEOUT).await;
        good.release().await.unwrap();
        ensemble.delete_node(deleted.node());
        let lost = ErrorKind::Lost(LossReason::NodeDeleted);
        assert_eq!(deleted.release().await.unwrap_err().kind(), lost);
    });
}

#[test]
fn a_hold_is_at_risk_without_a_connection_or_a_lease() {
    with_hold(async |_, session, hold| {
        session.set_connected(false);
        assert_eq!(hold.state(), HoldState::AtRisk);
        assert!(!hold.valid_for().is_zero());
        session.set_connected(true);
        assert_eq!(hold.state(), HoldState::Held);
        // Without an answer it is at risk soon, and valid for as long as it said.
        let until = clock::now() + hold.valid_for();
        session.ask();
        clock::sleep(TIMEOUT / 5 + Duration::from_millis(1)).await;
        assert!(session.is_late(hold.grant().holding()));
        assert_eq!((hold.state(), clock::now() + hold.valid_for()), (HoldState::AtRisk, until));
    });
}

#[test]
fn without_a_heartbeat_a_hold_lapses_and_is_not_at_risk() {
    with_ensemble(async |ensemble| {
        let keeper = Keeper::new(TIMEOUT, clock::now(), clock::now()).without_heartbeat();
        let session = Session::new(Arc::new(ensemble.clone()), 7, keeper, Arc::default());
        let hold = ensemble.hold(&session, "/a", Owner::unique());
        clock::sleep(TIMEOUT).await;
        assert_eq!((hold.state(), hold.valid_for()), (HoldState::Held, Duration::ZERO));
    });
}

#[test]
fn a_grant_knows_whether_and_why_it_is_lost() {
    with_session(async |ensemble, session| {
        let grant = ensemble.grant(&session, "/a", Owner::unique(), false);
        let hold = Hold::new(grant.clone());
        assert_eq!((grant.check_not_lost(), hold.loss().reason()), (Ok(()), None));
        session.lose(grant.holding(), LossReason::ForeignContender);
        let reason = Some(LossReason::ForeignContender);
        assert_eq!(grant.check_not_lost().unwrap_err().kind(), ErrorKind::Lost(LossReason::ForeignContender));
        assert_eq!(hold.loss().reason(), reason);
    });
}

#[test]
fn a_hold_lasts_until_it_is_lost_or_released() {
    with_session(async |ensemble, session| {
        let hold = |path| ensemble.hold(&session, path, Owner::unique());
        let (released, lost) = (hold("/a"), hold("/b"));
        clock::sleep(Duration::from_secs(1)).await;
        session.lose(lost.grant().holding(), LossReason::NodeDeleted);
        clock::sleep(Duration::from_secs(2)).await;
        drop((released, lost));
        let held = session.counters().read().hold_time;
        assert_eq!((held.count(), held.sum()), (2, 4.0));
    });
}

#[test]
fn a_release_that_nobody_will_confirm_says_why_and_when_the_lock_is_free() {
    with_hold(async |_, session, hold| {
        let release = hold.begin_release(Owner::current()).unwrap().unwrap();
        session.set_connected(false);
        session.set_trouble(Some("the password is wrong".into()));
        session.abandon_nodes();
        hold.grant().holding().end(None, session.loss());
        let message = release.await.unwrap_err().to_string();
        assert!(message.contains("the password is wrong"), "{message}");
        assert!(message.contains("12s after it last heard from the client"), "{message}");
    });
}

#[test]
fn a_name_that_is_used_again_is_told_from_its_earlier_node_by_the_transaction() {
    let after = |is_used_again: bool| {
        with_session(async |ensemble, session| {
            let holding = ensemble.holding(&session, "/a", true);
            let (token, slot) = (Token::of(holding.czxid), Arc::new(Slot::of(SlotState::Next(None))));
            let granter = Weak::<Keeps>::new();
            let grant = Grant::new(holding, token, slot, Owner::unique(), false, granter, TurnId(1));
            let hold = Hold::new(grant);
            let release = hold.begin_release(Owner::current()).unwrap().unwrap();
            session.end(LossReason::SessionExpired);
            if is_used_again {
                ensemble.delete_node(hold.node());
                ensemble.create("/b");
                ensemble.create(hold.node());
            }
            hold.grant().slot.set(SlotState::Open(ensemble.session()));
            hold.grant().holding().end(None, session.loss());
            release.await.map_err(|error| error.kind())
        })
    };
    assert_eq!((after(true), after(false)), (Ok(()), Err(ErrorKind::Timeout)));
}

#[test]
fn a_hold_reads_what_is_there_or_says_that_it_cannot() {
    with_hold(async |ensemble, _, hold| {
        let start = clock::now();
        assert_eq!(hold.read(hold.node()).await.unwrap().unwrap().data, hold.node().as_bytes());
        assert_eq!(hold.read("/b").await.unwrap(), None);
        ensemble.fall_silent();
        assert_eq!(hold.read("/b").await.unwrap_err().kind(), ErrorKind::Unreachable);
        assert_eq!(clock::now().since(start), TIMEOUT);
    });
}

#[test]
fn a_guarded_write_without_an_answer_keeps_the_node_from_the_next_holder() {
    with_hold(async |ensemble, _, hold| {
        let write = || hold.guarded().set_data("/b", b"", None).commit();
        write().await.unwrap();
        assert!(!hold.grant().is_unsettled());
        ensemble.fall_silent();
        assert_eq!(write().await.unwrap_err().kind(), ErrorKind::Uncertain);
        assert!(hold.grant().is_unsettled());
    });
}

#[test]
fn a_guarded_write_that_finds_no_node_says_that_the_hold_is_lost_or_that_it_was_released_meanwhile() {
    with_ensemble(async |ensemble| {
        let refused = async |releases: bool| {
            let hold = ensemble.hold(&ensemble.session(), "/a", Owner::unique());
            let mut write = hold.guarded().set_data("/b", b"", None).commit();
            ensemble.answer_late(Duration::from_secs(1));
            ensemble.delete_node(hold.node());
            assert!((&mut write).now_or_never().is_none(), "it has been sent");
            if releases {
                hold.let_go();
            }
            write.await.unwrap_err().kind()
        };
        assert_eq!(refused(false).await, ErrorKind::Lost(LossReason::NodeDeleted));
        assert_eq!(refused(true).await, ErrorKind::NotHeld);
    });
}

#[test]
fn a_release_by_another_shows_that_holds_are_handed_over() {
    with_ensemble(async |ensemble| {
        let owner = Owner::unique();
        let released = |owner, by| {
            let hold = ensemble.hold(&ensemble.session(), "/a", owner);
            drop(hold.begin_release(by).unwrap());
            hold.grant().session().counters().attempts.hands_over()
        };
        assert!(released(owner, Owner::unique()));
        assert!(!released(owner, owner));
        assert!(!released(Owner::once(), owner), "an owner of one call cannot come back");
    });
}

#[test]
fn a_holder_is_told_that_others_wait_once_it_has_asked() {
    with_hold(async |_, session, hold| {
        let holding = hold.grant().holding().clone();
        let notice = || holding.watch().borrow().notice;
        assert_eq!(notice(), Notice::Unasked);
        let mut wanted = Box::pin(hold.watch_wanted().come());
        assert_eq!((wanted.as_mut().now_or_never(), notice()), (None, Notice::Asked));
        holding.set_wanted(true);
        assert!(wanted.await && hold.is_wanted());
        let copy = hold.watch_wanted();
        holding.set_wanted(false);
        assert!(!hold.is_wanted());
        holding.set_wanted(true);
        session.lose(&holding, LossReason::NodeDeleted);
        assert!(!copy.is_set() && !copy.come().await);
    });
}
