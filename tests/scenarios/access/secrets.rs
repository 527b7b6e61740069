//! No output has a password in it.

use super::sasl::closed;
use crate::support::users::{ANN, BOB, NEW_ANN, User, file};
use crate::support::{SESSION, held, options, soon};
use ground::{Proxy, shared};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use tracing::Event;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use zklock::further::{Access, Credentials};
use zklock::{Client, Error};

/// Collects everything that is logged, at every level, by any crate.
#[derive(Clone, Default)]
struct Collect(Arc<Mutex<String>>);

impl Collect {
    fn say(&self, what: impl fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{what:?}\n"));
    }

    fn has_heard(&self, words: &[&str]) {
        let said = self.0.lock().unwrap();
        for word in words {
            assert!(said.contains(word), "{word:?} is not in:\n{said}");
        }
    }

    /// Asserts that their passwords were not logged: neither as they are, nor as the bytes of a request, nor in base64.
    fn has_not_heard(&self, users: &[User]) {
        let said = self.0.lock().unwrap();
        for User { password, in_base64, .. } in users {
            let bytes = format!("{:?}", password.as_bytes());
            for secret in [*password, *in_base64, bytes.trim_matches(['[', ']'])] {
                assert!(!said.contains(secret), "{secret:?} is in:\n{said}");
            }
        }
    }
}

impl Visit for &Collect {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.say(format_args!("{field}={value:?}"));
    }
}

impl Layer<Registry> for Collect {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, Registry>) {
        span.record(&mut &*self);
    }
    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, Registry>) {
        values.record(&mut &*self);
    }
    fn on_event(&self, event: &Event<'_>, _: Context<'_, Registry>) {
        self.say(event.metadata());
        event.record(&mut &*self);
    }
}

/// Makes sure that log calls reach the collector. If another test reaches a log call for the first time just when a collection
/// begins, tracing can cache that nobody listens there. So this rebuilds the cache until this thread's sessions are logged.
async fn listen(all: &Collect) {
    let options = options(&shared().connect_string());
    let heard = async {
        while !all.0.lock().unwrap().contains("session opened") {
            tracing::callsite::rebuild_interest_cache();
            Client::connect(options.clone()).await.unwrap().close().await.unwrap();
        }
    };
    soon(heard).await;
}

/// On one thread, whose log is collected.
#[tokio::test]
async fn no_password_for_sasl_is_said_by_anything() {
    let all = Collect::default();
    let _guard = tracing::subscriber::set_default(Registry::default().with(all.clone()));
    listen(&all).await;
    let proxy = Proxy::before(closed().server(0));
    let hosts = proxy.connect_string();
    let file = file("secrets-of-sasl", &BOB.line());
    let as_user = |credentials| options(&hosts).credentials(credentials).access(Access::CreatorAll);
    let ann = as_user(ANN.sasl()).credentials(ANN.credentials());
    // His session must not end before he asks for it again, however busy the machine is.
    let bob = as_user(Credentials::sasl_from_file(&file).unwrap()).session_timeout(SESSION * 5);
    let fails = |error: &Error| all.say(format_args!("{error} {error:?}"));
    all.say((ANN.sasl(), &ann, &bob));

    let client = Client::connect(ann.clone()).await.unwrap();
    let lock = client.mutex("/sasl-secrets").unwrap();
    let hold = held(&lock).await;
    all.say((&client, client.stats(), &lock, &hold, soon(lock.contenders()).await.unwrap()));
    let other = Client::connect(bob.clone()).await.unwrap();
    fails(&soon(other.mutex("/sasl-secrets").unwrap().acquire()).await.unwrap_err());
    // The other may not log in again.
    std::fs::write(&file, format!("{}:{}", BOB.name, NEW_ANN.password)).unwrap();
    tracing::callsite::rebuild_interest_cache();
    proxy.reset();
    soon(hold.release()).await.unwrap();
    let lock = other.mutex("/sasl-secrets-of-bob").unwrap();
    let refused = soon(async {
        loop {
            // Tests beside this one may have switched off what they do not collect.
            tracing::callsite::rebuild_interest_cache();
            match lock.try_acquire().await {
                Err(error) if error.to_string().contains("refuse the login") => break error,
                _ => tokio::task::yield_now().await,
            }
        }
    });
    fails(&refused.await);
    for wrong in [bob, as_user(NEW_ANN.sasl()), ann.clone().credentials(ANN.sasl())] {
        fails(&soon(Client::connect(wrong)).await.unwrap_err());
    }
    // A server that lets her in without a login, and panic messages that could show all of this.
    fails(&soon(Client::connect(ann.clone().hosts(&shared().connect_string()))).await.unwrap_err());
    let panics =
        std::panic::catch_unwind(AssertUnwindSafe(|| panic!("{ann:?} {client:?} {lock:?}"))).unwrap_err();
    all.say(panics.downcast_ref::<String>().unwrap());
    client.close().await.unwrap();
    std::fs::remove_file(&file).unwrap();

    all.has_heard(&["session opened", "connection lost", "zookeeper_client", "without a user"]);
    all.has_not_heard(&[ANN, NEW_ANN, BOB]);
}
