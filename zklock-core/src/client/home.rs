//! The process in which a client is first needed, and what it has there.

use crate::base::error::Error;
use crate::base::stats::Stats;
use crate::base::wait::Wait;
use crate::client::registry::CoreClient;
use crate::connect::options::ClientOptions;
use crate::session::connection::{self, Connection, ConnectionState};
use crate::session::session::Session;
use crate::threads::call::{Beginning, Call};
use crate::threads::descriptors::{Listener, Opened};
use crate::threads::fork::Process;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::io::{Io, check_descriptors, check_resources};
use crate::threads::thread::host_runtime;
use crate::threads::watch::Watch;
use futures_util::FutureExt;
use once_cell::race::OnceBox;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;

/// The process in which a client is first needed. There, and only there, it makes a client of the core. So nothing that it has
/// in a parent process is touched in a child, and a client that no process has needed yet can be used in any.
#[derive(Clone)]
pub(crate) struct Home(Arc<OfHere>);

/// Its last owner drops the client, unless that must be left alone.
struct OfHere(Arc<Shared>);

struct Shared {
    options: ClientOptions,
    /// The runtime in which it was made. A child has none of its threads.
    runtime: Option<(Handle, Process)>,
    listener: Option<StateListener>,
    /// When it was first needed. No other process reads what follows.
    opened: OnceBox<Opened>,
    /// `None` if it was closed before anything needed it.
    client: OnceLock<Option<Made>>,
}

struct Made {
    client: ForkSafe<CoreClient>,
    _watch: Option<Watch>,
}

/// A callback that receives the state of the connection.
pub(super) type StateListener = Arc<dyn Fn(ConnectionState) + Send + Sync>;

impl Home {
    pub(super) fn new(options: ClientOptions, listener: Option<StateListener>) -> Self {
        let runtime = host_runtime().map(|runtime| (runtime, Process::current()));
        let shared = Shared { options, runtime, listener, opened: OnceBox::new(), client: OnceLock::new() };
        Self(Arc::new(OfHere(Arc::new(shared))))
    }

    /// Makes the same with a listener. Call it before anybody has used this.
    pub(super) fn with_listener(self, listener: StateListener) -> Self {
        Self::new(self.0.options.clone(), Some(listener))
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether it was used by a process from which this one was forked. It is useless here then.
    pub(super) fn is_forked(&self) -> bool {
        self.0.opened.get().is_some_and(|opened| opened.process().is_forked())
    }

    /// Fails if it was used before a fork, or before the program closed our descriptors.
    pub(super) fn refuse_forked(&self) -> Result<(), Error> {
        self.0.opened.get().map_or(Ok(()), |opened| opened.check())
    }

    /// Returns the client of the core, which is made now if there is none. Only for a home that is [settled](Self::settle).
    pub(super) fn made(&self) -> Result<&ForkSafe<CoreClient>, Error> {
        let made = match self.0.client.get() {
            Some(made) => made,
            None => {
                let io = self.io()?;
                let client = ForkSafe::new(CoreClient::unopened(self.0.options.clone(), io.clone())?, io);
                let listener = self.0.listener.clone();
                let watch = listener.map(|listener| follow(&client, move |state| listener(state)));
                self.0.client.get_or_init(|| Some(Made { client, _watch: watch }))
            }
        };
        made.as_ref().map(|made| &made.client).ok_or_else(Error::closed)
    }

    fn io(&self) -> Result<Io, Error> {
        match &self.0.runtime {
            Some((runtime, process)) if !process.is_forked() => Io::of(runtime.clone()),
            _ => Io::start(),
        }
    }

    /// Makes a call of the client that ends with `wait`. It connects first if necessary, and never for longer than the [connect
    /// timeout](ClientOptions::connect_timeout). One that `queues` takes its place before that, so that nobody gets ahead of it.
    pub(super) fn begin<R: Send + 'static>(
        &self,
        wait: Wait,
        queues: bool,
        begin: impl FnOnce(&ForkSafe<CoreClient>) -> Beginning<R> + Send + 'static,
    ) -> Call<R> {
        let home = self.clone();
        let begin = move || {
            home.settle()?;
            let client = match home.made() {
                Ok(client) => client,
                Err(error) => return Ok(Beginning::Over(Err(error))),
            };
            if client.fixed().pool().has_opened() {
                return Ok(begin(client));
            }
            if let Err(error) = check_resources() {
                return Ok(Beginning::Over(Err(error)));
            }
            let client = client.clone();
            let mut call = if queues { Ok(Box::pin(begin(&client).run())) } else { Err(begin) };
            Ok(Beginning::goes_on(&client.io().clone(), async move {
                // In its first step it takes its place.
                if let Some(result) = call.as_mut().ok().and_then(FutureExt::now_or_never) {
                    return result;
                }
                let opened = client.fixed().pool().opened(wait).await;
                // Kept until now, because the caller may have dropped the client meanwhile.
                drop(home);
                opened?;
                match call {
                    Ok(begun) => begun.await,
                    Err(begin) => begin(&client).run().await,
                }
            }))
        };
        Call::new(begin).until(wait)
    }

    /// Like [`begin`](Self::begin), but refuses a closed client before anything else. An acquire does that itself, and is counted.
    pub(super) fn begin_open<R: Send + 'static>(
        &self,
        wait: Wait,
        begin: impl FnOnce(&ForkSafe<CoreClient>) -> Beginning<R> + Send + 'static,
    ) -> Call<R> {
        self.begin(wait, false, |client| match client.fixed().pool().is_closed() {
            true => Beginning::Over(Err(Error::closed())),
            false => begin(client),
        })
    }

    /// Like [`begin_open`](Self::begin_open), for what goes on.
    pub(super) fn call<R, F>(
        &self,
        wait: Wait,
        call: impl FnOnce(ForkSafe<CoreClient>) -> F + Send + 'static,
    ) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.begin_open(wait, |client| Beginning::goes_on(client.io(), call(client.clone())))
    }

    /// Makes the call that closes the client for good.
    pub(super) fn close(&self) -> Call<()> {
        let home = self.clone();
        Call::new(move || {
            check_descriptors();
            home.settle()?;
            let mut is_news = false;
            let made = home.0.client.get_or_init(|| {
                is_news = true;
                None
            });
            if let (true, Some(listener)) = (is_news, &home.0.listener) {
                listener(ConnectionState::Closed);
            }
            Ok(match made {
                Some(made) => {
                    let shared = made.client.get()?.handle.shared().clone();
                    shared.pool.close();
                    Beginning::goes_on(made.client.io(), async move {
                        shared.pool.closed().await;
                        Ok(())
                    })
                }
                None => Beginning::Over(Ok(())),
            })
        })
    }

    /// Calls `listener` with each state of the connection, from the first connect on. From now on the client belongs to
    /// this process.
    pub(super) fn follow(
        &self,
        listener: impl FnMut(ConnectionState) + Send + 'static,
    ) -> Result<Watch, Error> {
        self.settle()?;
        if let Some(None) = self.0.client.get() {
            let listener = Listener::new(ConnectionState::Closed, listener);
            return Ok(Watch::start(&self.io()?, listener, |listener| async move {
                Listener::call(&listener, ConnectionState::Closed);
            }));
        }
        Ok(follow(self.made()?, listener))
    }

    /// Follows the state of the connection.
    pub(super) fn connection(&self) -> Result<Connection, Error> {
        self.settle()?;
        Ok(Connection::of(self.made()?.fixed().pool().slot()))
    }

    /// Returns how the client is connected; `None` if it has not connected yet, or belongs to another process.
    pub(super) fn connection_state(&self) -> Option<ConnectionState> {
        let made = self.here()?;
        if self.refuse_forked().is_err() {
            return Some(ConnectionState::Closed);
        }
        match made {
            Some(made) if made.client.fixed().pool().is_closed() => Some(ConnectionState::Closed),
            Some(made) => connection::state_at(&made.client.fixed().pool().slot().state()),
            None => Some(ConnectionState::Closed),
        }
    }

    /// Returns the client's counters, even after it was closed.
    pub(super) fn stats(&self) -> Stats {
        self.here()
            .and_then(Option::as_ref)
            .map(|made| made.client.fixed().handle.counters.read())
            .unwrap_or_default()
    }

    /// Returns the client, if it has connected and was not closed since.
    pub(super) fn connected(&self) -> Option<&ForkSafe<CoreClient>> {
        self.0.opened.get()?.check().ok()?;
        let client = &self.0.client.get()?.as_ref()?.client;
        let pool = client.fixed().pool();
        (pool.has_opened() && !pool.is_closed()).then_some(client)
    }

    /// Returns the session; `None` while there is none.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        self.connected()?.fixed().pool().slot().current()
    }

    /// `None` in a process that has not used it.
    fn here(&self) -> Option<&Option<Made>> {
        if self.0.opened.get()?.process().is_forked() { None } else { self.0.client.get() }
    }

    /// Notes that it is needed here.
    fn settle(&self) -> Result<(), Error> {
        let made = self.0.client.get().and_then(Option::as_ref);
        if made.is_some_and(|made| made.client.io().is_of_host()) {
            return Ok(());
        }
        self.0.opened.get_or_init(|| Box::new(Opened::now())).check()
    }
}

fn follow(client: &ForkSafe<CoreClient>, listener: impl FnMut(ConnectionState) + Send + 'static) -> Watch {
    let mut connection = Connection::of(client.fixed().pool().slot());
    let listener = Listener::new(ConnectionState::Closed, listener);
    Watch::start(client.io(), listener, |listener| async move {
        while let Some(state) = connection.next().await {
            Listener::call(&listener, state);
        }
    })
}

impl Drop for OfHere {
    fn drop(&mut self) {
        check_descriptors();
        if self.opened.get().is_some_and(|opened| opened.check().is_err()) {
            // The parent owns it, and another of its threads may have been changing it. Or it would wake the I/O thread.
            std::mem::forget(self.0.clone());
        }
    }
}

impl Deref for OfHere {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home")
            .field("hosts", &self.0.options.given_hosts.as_deref().unwrap_or_default())
            .field("session", &self.session().map(|session| format!("{:#x}", session.id())))
            .field("stats", &self.stats())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::threads::io::call_later;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_callback_may_begin_to_connect_and_must_not_wait_for_it() {
        let connect = || {
            let home = Home::new(ClientOptions::new("127.0.0.1:1"), None);
            home.begin(Wait::Forever, false, |_| Beginning::Over(Ok(())))
        };
        let (sender, receiver) = channel();
        call_later(move || sender.send((connect().wait(), connect().detach(|| ()).map(drop))).unwrap())
            .unwrap();
        let (waited, began) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::Deadlock);
        began.unwrap();
    }
}
