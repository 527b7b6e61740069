use super::*;
use crate::base::clock::virtual_clock;
use crate::base::error::ErrorKind;
use crate::session::fake::with_hold;
use std::task::{Context, Wake};

fn keeper(state: SlotState) -> SessionKeeper {
    let shared = Shared::new(ClientOptions::new("none:1"), Arc::new(Slot::of(state)), Arc::default());
    shared.running.send_replace(true);
    SessionKeeper { shared, failure: None }
}

#[test]
fn holds_are_kept_as_the_options_say() {
    virtual_clock::run(async {
        let (timeout, loss_timeout) = (Duration::from_secs(10), Duration::from_secs(3));
        let options = || ClientOptions::new("none:1");
        let keeper = |options: &ClientOptions| super::keeper(options, timeout, clock::now());
        assert_eq!(keeper(&options()).loss_timeout(), timeout / 10);
        assert_eq!(keeper(&options().loss_timeout(loss_timeout)).loss_timeout(), loss_timeout);
        assert!(keeper(&options()).has_heartbeat() && !keeper(&options().heartbeat(false)).has_heartbeat());
    });
}

#[test]
fn it_backs_off_while_no_session_can_be_opened() {
    virtual_clock::run(async {
        let keeper = keeper(SlotState::Next(None));
        let mut pause = FIRST_PAUSE;
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let start = clock::now();
            keeper.pause(&mut pause, "no server".to_owned()).await;
            pauses.push(clock::now().since(start).as_millis());
        }
        assert_eq!(pauses, [50, 100, 200, 400, 500, 500]);
        assert!(matches!(keeper.shared.slot.state(), SlotState::First(Some(why)) if &*why == "no server"));
    });
}

#[test]
fn a_client_that_is_closed_waits_for_no_pause() {
    virtual_clock::run(async {
        let (keeper, start) = (keeper(SlotState::Next(None)), clock::now());
        let mut pause = LONGEST_PAUSE;
        let pauses = keeper.unless_closed(keeper.pause(&mut pause, "no server".to_owned()));
        let closes = async { keeper.shared.closing.send_replace(true) };
        assert_eq!(tokio::join!(pauses, closes), (None, false));
        assert_eq!(clock::now(), start);
    });
}

#[test]
fn everybody_is_told_when_the_runtime_drops_the_keeper() {
    with_hold(async |_, session, hold| {
        let keeper = keeper(SlotState::Open(session));
        let (slot, running) = (keeper.shared.slot.clone(), keeper.shared.running.subscribe());
        drop(keeper);
        assert_eq!(hold.lost().await, Ok(Some(LossReason::ClientClosed)));
        assert_eq!(slot.session().await.err().map(|error| error.kind()), Some(ErrorKind::Closed));
        assert!(!*running.borrow());
    });
}

/// A caller that begins as soon as it may.
struct Begins(Shared);

impl Wake for Begins {
    fn wake(self: Arc<Self>) {
        assert!(self.0.slot.first(&self.0.running).1, "it starts a keeper");
    }
}

#[test]
fn who_closes_waits_for_the_keeper_that_follows_one_that_failed() {
    let mut keeper = keeper(SlotState::First(None));
    keeper.failure = Some(wanting());
    let shared = keeper.shared.clone();
    let mut state = shared.slot.state.subscribe();
    let mut changes = Box::pin(state.changed());
    let caller = Arc::new(Begins(shared.clone())).into();
    assert!(changes.as_mut().poll(&mut Context::from_waker(&caller)).is_pending());
    drop(keeper);
    assert!(*shared.running.borrow());
}
