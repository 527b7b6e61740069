//! A call of the core, and what Python gets from it.
//!
//! Each method of a noun is one verb, whichever class it is called on. A blocking class runs it: the thread waits, or the
//! greenlet. An asyncio class makes a coroutine of it.

use crate::calls::anchor::AnchoredCallbacks;
use crate::calls::coroutine::{Coroutine, Stage};
use crate::calls::event_loop;
use crate::calls::greenlet::Greenlet;
use crate::calls::waker::Waker;
use crate::client_inner::ClientInner;
use crate::guest::error::raised;
use crate::guest::exit::stay_if_over;
use crate::guest::value;
use pyo3::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;
use zklock::{Call, Error, ErrorKind};

/// Converts the result of a call to what Python gets.
pub(crate) trait Convert<A, R = Py<PyAny>>:
    FnOnce(Python<'_>, Result<A, Error>) -> PyResult<R> + Send + 'static
{
}

impl<A, R, F> Convert<A, R> for F where F: FnOnce(Python<'_>, Result<A, Error>) -> PyResult<R> + Send + 'static
{}

/// A call that has not begun.
#[must_use = "it does nothing unless it is run, or becomes a coroutine"]
pub(crate) struct Verb<T, F> {
    make: Box<dyn FnOnce() -> Call<T> + Send>,
    convert: F,
    of: Of,
    may_be_at_once: bool,
    begins_first: bool,
}

/// What the call belongs to.
enum Of {
    Nothing,
    /// A client, which may have to connect first, and which a coroutine keeps alive.
    Client(Arc<ClientInner>),
    /// Something with these callbacks, which a coroutine keeps alive.
    Anchored(Arc<AnchoredCallbacks>),
}

impl<T: Send + 'static, F> Verb<T, F> {
    pub(crate) fn new(call: Call<T>, convert: F) -> Self {
        Self::timed(move || call, convert)
    }

    /// Of a call that is made when it begins, so that its timeout counts from then.
    pub(crate) fn timed(make: impl FnOnce() -> Call<T> + Send + 'static, convert: F) -> Self {
        Self { make: Box::new(make), convert, of: Of::Nothing, may_be_at_once: false, begins_first: false }
    }

    pub(crate) fn of_client(self, client: &Arc<ClientInner>) -> Self {
        Self { of: Of::Client(client.clone()), ..self }
    }

    pub(crate) fn of_anchored(self, callbacks: &Arc<AnchoredCallbacks>) -> Self {
        Self { of: Of::Anchored(callbacks.clone()), ..self }
    }

    /// The result may be there at once. Then a thread gets it without leaving the interpreter.
    pub(crate) fn maybe_at_once(self, may_be_at_once: bool) -> Self {
        Self { may_be_at_once, ..self }
    }

    /// It ends something, and does so when it begins: that must happen even if nobody may wait for the rest.
    pub(crate) fn begins_first(self) -> Self {
        Self { begins_first: true, ..self }
    }

    /// Converts once more what it gives.
    pub(crate) fn and_then<R, S>(
        self,
        convert: impl FnOnce(Python<'_>, R) -> PyResult<S> + Send + 'static,
    ) -> Verb<T, impl Convert<T, S>>
    where
        F: Convert<T, R>,
    {
        let Self { make, convert: first, of, may_be_at_once, begins_first } = self;
        let convert = move |py: Python<'_>, result| convert(py, first(py, result)?);
        Verb { make, convert, of, may_be_at_once, begins_first }
    }

    /// Waits for the call: with the greenlet, if others of its thread can run meanwhile, otherwise with the thread.
    pub(crate) fn run<R>(self, py: Python<'_>) -> PyResult<R>
    where
        F: FnOnce(Python<'_>, Result<T, Error>) -> PyResult<R>,
    {
        let greenlet = Greenlet::current(py)?;
        if !greenlet.as_ref().is_some_and(Greenlet::lets_others_run) && event_loop::is_running(py)? {
            // Also where there is nothing to wait for, such as a lock that lingers: it must not work by chance.
            let result = if self.begins_first { (self.make)().at_once() } else { None };
            let refused = || Err(event_loop::refusal(self.begins_first));
            return (self.convert)(py, result.unwrap_or_else(refused));
        }
        self.prepare(py)?;
        let mut call = (self.make)();
        let at_once = if self.may_be_at_once { call.at_once() } else { None };
        let result = match (at_once, greenlet) {
            (Some(result), _) => result,
            (None, Some(greenlet)) => greenlet.wait_for(call)?,
            (None, None) => py.detach(|| {
                let result = call.wait();
                stay_if_over();
                result
            }),
        };
        (self.convert)(py, result)
    }

    /// Makes a coroutine, which begins the call when it is awaited.
    pub(crate) fn coroutine(self, what: impl Into<Cow<'static, str>>) -> Coroutine
    where
        F: Convert<T>,
    {
        let anchored = self.anchored().cloned();
        Coroutine::new(what, move |py, waker| self.begin(py, waker)).keeping(anchored)
    }

    /// Begins the call, and makes a coroutine that waits for the rest.
    pub(crate) fn begun(self, py: Python<'_>, what: impl Into<Cow<'static, str>>) -> PyResult<Coroutine>
    where
        F: Convert<T>,
    {
        let anchored = self.anchored().cloned();
        Ok(Coroutine::begun(what, |waker| self.begin(py, waker))?.keeping(anchored))
    }

    /// Makes a coroutine. A call that ends something begins now.
    pub(crate) fn begun_or_coroutine(self, py: Python<'_>, what: String) -> PyResult<Coroutine>
    where
        F: Convert<T>,
    {
        if self.begins_first { self.begun(py, what) } else { Ok(self.coroutine(what)) }
    }

    fn begin(self, py: Python<'_>, waker: &Arc<Waker>) -> PyResult<Stage>
    where
        F: Convert<T>,
    {
        self.prepare(py)?;
        let mut call = (self.make)();
        let begun = match call.at_once() {
            Some(result) => Err(result),
            None => call.detach(waker.on_ready()).map_err(Err),
        };
        match begun {
            Ok(started) => Ok(Stage::begun(started, self.convert)),
            Err(result) => (self.convert)(py, result).map(Stage::Done),
        }
    }

    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        if let Of::Client(client) = &self.of { client.prepare(py) } else { Ok(()) }
    }

    fn anchored(&self) -> Option<&Arc<AnchoredCallbacks>> {
        match &self.of {
            Of::Nothing => None,
            Of::Client(client) => Some(&client.callbacks.anchored),
            Of::Anchored(callbacks) => Some(callbacks),
        }
    }
}

/// Converts a result; an error is raised.
pub(crate) fn or_raise<A, R>(
    convert: impl FnOnce(Python<'_>, A) -> PyResult<R> + Send + 'static,
) -> impl Convert<A, R> {
    move |py: Python<'_>, result: Result<A, Error>| match result {
        Ok(answer) => convert(py, answer),
        Err(error) => Err(raised(py, &error)),
    }
}

/// Converts the result of a call that gives nothing but an error.
pub(crate) fn nothing<A>(py: Python<'_>, result: Result<A, Error>) -> PyResult<Py<PyAny>> {
    result.map(|_| py.None()).map_err(|error| raised(py, &error))
}

/// Converts an answer of yes or no.
pub(crate) fn boolean(py: Python<'_>, result: Result<bool, Error>) -> PyResult<Py<PyAny>> {
    result.map(|answer| value::boolean(py, answer)).map_err(|error| raised(py, &error))
}

/// Returns nothing, and raises nothing, if the time is over.
pub(crate) fn in_time<A>(py: Python<'_>, result: Result<A, Error>) -> PyResult<Option<A>> {
    match result {
        Err(error) if error.kind() == ErrorKind::Timeout => Ok(None),
        result => result.map(Some).map_err(|error| raised(py, &error)),
    }
}
