//! The span of an acquire, as a `tracing` subscriber sees it: from the call until nothing is left of its attempt.

use crate::support::{client, comes, held, on_a_thread, operator, soon, threads};
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Instrument, Metadata};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use zklock::{ErrorKind, Hold, LossReason};

/// The span in which something was logged, and what was.
type Line = (Option<Id>, String);

/// The log of a thread, in order.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Line>>>);

/// The message alone, or the fields of a span.
struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => write!(self.0, "{value:?}").unwrap(),
            "path" => write!(self.0, " path={value:?}").unwrap(),
            _ => {}
        }
    }
}

impl Layer<Registry> for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, Registry>) -> bool {
        metadata.target().starts_with("zklock") || metadata.target() == module_path!()
    }
    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, context: Context<'_, Registry>) {
        let mut line = format!("{} {} begins", span.metadata().level(), span.metadata().name());
        span.record(&mut Text(&mut line));
        let within = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id());
        self.0.lock().unwrap().push((within, line));
    }
    fn on_event(&self, event: &Event<'_>, context: Context<'_, Registry>) {
        let mut line = String::new();
        event.record(&mut Text(&mut line));
        let message = line.split(" path=").next().unwrap_or_default().to_owned();
        self.0.lock().unwrap().push((context.event_span(event).map(|span| span.id()), message));
    }
    fn on_close(&self, id: Id, _: Context<'_, Registry>) {
        self.0.lock().unwrap().push((Some(id), "over".to_owned()));
    }
}

impl Recorder {
    /// Begins to record this thread's log. If another test reaches a log call just now, tracing can cache that nobody listens
    /// there, so the cache is rebuilt.
    async fn listening() -> (Self, DefaultGuard) {
        let recorder = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(recorder.clone()));
        let client = client().await;
        let mut number = 0;
        let all = ["DEBUG acquire begins", "acquire begins", "node created", "lock granted", "lock released"];
        while !all.iter().all(|line| recorder.has(line)) || number == 0 {
            tracing::callsite::rebuild_interest_cache();
            number += 1;
            held(&client.mutex(&format!("/spans/first-{number}")).unwrap()).await.release().await.unwrap();
        }
        soon(client.close()).await.unwrap();
        (recorder, guard)
    }

    fn has(&self, beginning: &str) -> bool {
        self.0.lock().unwrap().iter().any(|(_, line)| line.starts_with(beginning))
    }

    /// The span of the acquire at this path, and its parent.
    fn span_of(&self, path: &str) -> (Id, Option<Id>) {
        let told = self.0.lock().unwrap();
        let begins = format!("DEBUG acquire begins path={path:?}");
        let spans: Vec<_> = told.iter().filter(|(_, line)| *line == begins).collect();
        assert_eq!(spans.len(), 1, "{told:?}");
        // The line right after the span's beginning is its first, logged within it.
        let at = told.iter().position(|(_, line)| *line == begins).unwrap();
        let first = &told[at + 1];
        assert_eq!(first.1, "acquire begins");
        (first.0.clone().unwrap(), spans[0].0.clone())
    }

    /// Everything that was logged within the span of the acquire at this path, up to now.
    fn told_at(&self, path: &str) -> Vec<String> {
        let (span, _) = self.span_of(path);
        let told = self.0.lock().unwrap();
        let within = told.iter().filter(|(within, _)| within.as_ref() == Some(&span));
        within.map(|(_, line)| line.clone()).collect()
    }

    /// Asserts that the line was logged within this other span, and before the span of the acquire at this path ended.
    fn is_told_before_the_end_of(&self, path: &str, line: &str, within: Option<Id>) {
        let (span, _) = self.span_of(path);
        let told = self.0.lock().unwrap();
        let at = |within: Option<Id>, line: &str| {
            told.iter().rposition(|(at, told)| (at, &**told) == (&within, line))
        };
        let (told_at, over) = (at(within, line), at(Some(span), "over"));
        assert!(told_at.is_some() && told_at < over, "{told:?}");
    }

    /// Waits until the span is over, and returns everything that was logged within it.
    async fn all_told_at(&self, path: &str) -> Vec<String> {
        comes(async || self.told_at(path).last().is_some_and(|line| line == "over")).await;
        self.told_at(path)
    }
}

/// Another client's hold, acquired on a thread whose log is not recorded.
async fn another(path: &'static str) -> Hold {
    on_a_thread(move || threads::client().mutex(path).unwrap().acquire().wait().unwrap()).await
}

#[tokio::test]
async fn the_span_of_a_grant_is_within_its_callers_and_lasts_until_the_node_is_gone() {
    let (recorder, _guard) = Recorder::listening().await;
    let client = client().await;
    let path = "/spans/granted";
    let lock = client.mutex(path).unwrap();
    let job = tracing::info_span!("job");
    let hold = soon(lock.acquire().instrument(job.clone())).await.unwrap();
    assert_eq!(recorder.span_of(path).1, job.id());
    let until_granted = ["acquire begins", "node created", "lock granted"];
    assert_eq!(recorder.told_at(path), until_granted, "it lasts as long as the hold");
    assert!(recorder.has("INFO job begins"));
    // Lines that the program logs while it holds are not part of the span.
    tracing::info!("at work");
    assert_eq!(recorder.told_at(path), until_granted);
    let own = tracing::info_span!("release");
    soon(hold.release().instrument(own.clone())).await.unwrap();
    assert_eq!(recorder.all_told_at(path).await, [&until_granted[..], &["over"]].concat());
    // The release is logged within the span of the program that releases.
    recorder.is_told_before_the_end_of(path, "lock released", own.id());
    assert_eq!(operator().children_or_empty(path), [""; 0]);
}

#[tokio::test]
async fn the_span_of_a_wait_in_vain_lasts_until_its_node_is_gone() {
    let (recorder, _guard) = Recorder::listening().await;
    let client = client().await;
    for (path, end) in [("/spans/timed-out", "lock not acquired"), ("/spans/cancelled", "acquire cancelled")]
    {
        let hold = another(path).await;
        let lock = client.mutex(path).unwrap();
        let waits = async || recorder.told_at(path).last().is_some_and(|line| line == "waits behind another");
        if path.ends_with("cancelled") {
            tokio::select! {
                biased;
                hold = lock.acquire() => panic!("{hold:?}, and another holds"),
                () = comes(waits) => {}
            }
        } else {
            let error = soon(lock.acquire_timeout(Duration::from_millis(300))).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
        }
        let all = recorder.all_told_at(path).await;
        assert_eq!(all, ["acquire begins", "node created", "waits behind another", end, "over"]);
        assert_eq!(operator().children(path).len(), 1, "that of the holder");
        on_a_thread(move || hold.release().wait()).await.unwrap();
    }
}

#[tokio::test]
async fn the_span_of_a_lost_hold_ends_by_itself_after_the_loss_is_told() {
    let (recorder, _guard) = Recorder::listening().await;
    let (client, path) = (client().await, "/spans/lost");
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    operator().delete(hold.node());
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    let all = recorder.all_told_at(path).await;
    assert_eq!(all, ["acquire begins", "node created", "lock granted", "over"]);
    // The heartbeat reports it. It serves all holds of the session, so it is in no span.
    recorder.is_told_before_the_end_of(path, "hold lost", None);
}
