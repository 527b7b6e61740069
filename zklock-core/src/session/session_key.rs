//! How another process ends the session of a process that is dead.
//!
//! The servers keep the session of a dead process, and its locks, until the session times out. A process on the same machine
//! that waited for the end of the other one can tell the servers earlier.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::platform;
use crate::connect::options::ClientOptions;
use crate::machine::Moment;
use crate::zookeeper::connecting;
use crate::zookeeper::password;
use crate::zookeeper::serving::End;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

/// The longest time that one server is given.
const TRY: Duration = Duration::from_secs(1);
/// The pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The number of the session, and its timeout in milliseconds. The password follows.
const HEAD: usize = 12;
const NO_LOOPBACK: &str = "this machine has no loopback interface that works";
/// Longer than the password of any server.
const LONGEST: usize = 1024;

/// The key with which another process can end a session. See
/// [`Client::session_key`](crate::Client::session_key).
///
/// It contains the password of the session, with which any program can use the session and end it. `Debug` prints only the
/// number of the session.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock::{Client, ClientOptions};
/// use zklock::further::SessionKey;
///
/// # async fn example(client: Client, options: ClientOptions) -> Result<(), zklock::Error> {
/// // In the process that may die. It passes the bytes on, for example through a pipe.
/// let bytes = client.session_key().await?.to_bytes();
///
/// // In the process that has waited for the end of the first.
/// let key = SessionKey::from_bytes(&bytes)?;
/// key.end_session(&options, Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    session: i64,
    /// In milliseconds.
    timeout: i32,
    password: Box<[u8]>,
}

/// How a session ended. See [`SessionKey::end_session`].
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock::ClientOptions;
/// use zklock::further::{SessionEnd, SessionKey};
///
/// # async fn example(key: SessionKey, options: ClientOptions) -> Result<(), zklock::Error> {
/// match key.end_session(&options, Duration::from_secs(5)).await? {
///     SessionEnd::Ended => println!("its locks are free from now on"),
///     end => println!("nothing was left to end: {end:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The call ended it: its nodes are deleted, and its locks are free.
    Ended,
    /// A server has answered that it was already over.
    WasOver,
}

impl SessionKey {
    pub(crate) fn new(session: i64, timeout: Duration, password: Vec<u8>) -> Self {
        let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        Self { session, timeout, password: password.into() }
    }

    /// Returns the number of the session.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(key: &zklock::further::SessionKey) {
    /// // The key itself has no business in a log.
    /// println!("waiting for the end of the process with session {:#x}", key.session_id());
    /// # }
    /// ```
    pub fn session_id(&self) -> i64 {
        self.session
    }

    /// Returns the timeout that the session had when the key was made. It may have become shorter since.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(key: &zklock::further::SessionKey, options: &zklock::ClientOptions) -> Result<(), zklock::Error> {
    /// // After that time the servers have ended the session anyway.
    /// key.end_session(options, key.session_timeout()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn session_timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.unsigned_abs().into())
    }

    /// Returns the whole key, including the password, for a pipe or a socket to a process of the same user.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::further::SessionKey;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let key = client.session_key().await?;
    /// assert_eq!(SessionKey::from_bytes(&key.to_bytes())?, key);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.session.to_be_bytes()[..], &self.timeout.to_be_bytes(), &self.password].concat()
    }

    /// Reads a key that [`to_bytes`](Self::to_bytes) returned.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the bytes are anything else.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ErrorKind;
    /// use zklock::further::SessionKey;
    ///
    /// let error = SessionKey::from_bytes(b"not a key").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let parsed = || {
            let (session, rest) = bytes.split_first_chunk()?;
            let (timeout, password) = rest.split_first_chunk()?;
            let (session, timeout) = (i64::from_be_bytes(*session), i32::from_be_bytes(*timeout));
            let is_good = session != 0 && timeout > 0 && !password.is_empty();
            is_good.then(|| Self { session, timeout, password: password.into() })
        };
        let is_short = bytes.len() <= HEAD + LONGEST;
        parsed().filter(|_| is_short).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "these bytes are not the key of a session: pass them on unchanged",
            )
        })
    }

    /// Ends the session at the servers, so that its locks are free before its timeout.
    ///
    /// **The process that had the session must be dead.** If it is alive, it loses everything that it holds, and learns of that
    /// only after others hold it. A silent process may merely be stopped, or slow. Wait for its end with a `pidfd`, or as its
    /// parent.
    ///
    /// `options` are those of the client: hosts, credentials, TLS. Credentials in files are read again. The call takes no longer
    /// than `within`.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if no server has confirmed the end in time;
    /// * [`ErrorKind::Refused`] if the servers do not accept the credentials, or do not let clients resume a
    ///   session;
    /// * [`ErrorKind::InvalidInput`] if the options [contradict each other](ClientOptions::check).
    ///
    /// After an error, the session lasts until its timeout, unless a server has ended it and its answer was lost.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::ClientOptions;
    /// use zklock::further::SessionKey;
    ///
    /// # async fn example(mut worker: std::process::Child, key: SessionKey) -> Result<(), Box<dyn std::error::Error>> {
    /// worker.wait()?;
    /// key.end_session(&ClientOptions::new("zk1:2181,zk2:2181"), Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn end_session(&self, options: &ClientOptions, within: Duration) -> Result<SessionEnd, Error> {
        self.end_session_within(within, Duration::ZERO, options).await
    }

    /// Keeps the session and its locks for `keep`, even if that is longer than its timeout, and then [ends](Self::end_session)
    /// it. The locks become free earlier if the servers cannot be reached for a session timeout, or if this process dies too.
    /// If the future is dropped while it keeps the session, the session is ended.
    ///
    /// **The process that had the session must be dead.**
    ///
    /// It is hidden, because only the command's own guardian needs it, for `zklock run --at-least`.
    ///
    /// # Errors
    ///
    /// Fails like [`end_session`](Self::end_session) does, after `keep` and the connect timeout at most.
    #[doc(hidden)]
    pub async fn end_session_after(
        &self,
        keep: Duration,
        options: &ClientOptions,
    ) -> Result<SessionEnd, Error> {
        self.end_session_within(options.connect_timeout.min(self.session_timeout()), keep, options).await
    }

    async fn end_session_within(
        &self,
        within: Duration,
        keep: Duration,
        options: &ClientOptions,
    ) -> Result<SessionEnd, Error> {
        let options = &options.clone().checked()?;
        let mut problem = NO_LOOPBACK.to_owned();
        let (until, bound) = (clock::now() + keep, keep.saturating_add(within));
        match clock::timeout(bound, self.end(options, until, &mut problem)).await {
            Ok(result) => result,
            Err(_) => {
                let message =
                    format!("the session {:#x} was not ended within {within:?}: {problem}", self.session);
                Err(Error::new(ErrorKind::Unreachable, message))
            }
        }
    }

    async fn end(
        &self,
        options: &ClientOptions,
        until: Moment,
        problem: &mut String,
    ) -> Result<SessionEnd, Error> {
        let session = format!("the session {:#x}", self.session);
        let Some(info) = password::session_of(options, self.session, &self.password).await else {
            return Err(Error::new(
                ErrorKind::Unreachable,
                format!("{session} was not ended: {NO_LOOPBACK}"),
            ));
        };
        "no server answers".clone_into(problem);
        let refused =
            |why: &str| Error::new(ErrorKind::Refused, format!("{session} cannot be ended from here: {why}"));
        let hosts = options.hosts.servers.len();
        let (mut refusals, mut pause) = (0, FIRST_PAUSE);
        let mut turn = platform::random_bits() as usize;
        // Whether a server may have ended it, and its answer was lost.
        let mut is_ending = false;
        loop {
            let taking = connecting::take(options, info.clone(), self.session_timeout(), turn);
            let tried = match clock::timeout(TRY, taking).await {
                Ok(Ok(ensemble)) => {
                    pause = FIRST_PAUSE;
                    let mut ended = pin!(ensemble.ended());
                    tokio::select! {
                        // The session lives as long as this connection.
                        end = &mut ended => Ok(Ok(end)),
                        () = clock::sleep_until(until) => {
                            is_ending = true;
                            drop(ensemble);
                            clock::timeout(TRY, ended).await.map(Ok)
                        }
                    }
                }
                Ok(Err(problem)) => Ok(Err(problem)),
                Err(late) => Err(late),
            };
            let over = if is_ending { SessionEnd::Ended } else { SessionEnd::WasOver };
            let is_refused = matches!(tried, Ok(Err(Failure::Refused(_)) | Ok(End::Refused)));
            match tried {
                Ok(Ok(End::Closed)) => return Ok(SessionEnd::Ended),
                Ok(Ok(End::SessionOver) | Err(Failure::SessionOver)) => return Ok(over),
                Ok(Ok(End::Lost)) => "the server hangs up".clone_into(problem),
                Ok(Ok(End::Refused)) => "the servers refuse the login".clone_into(problem),
                Ok(Err(Failure::GivenUp(why))) => return Err(refused(&why)),
                Ok(Err(failure)) => *problem = failure.to_string(),
                Err(_) => "no server answers in time".clone_into(problem),
            }
            refusals = if is_refused { refusals + 1 } else { 0 };
            if refusals >= hosts {
                return Err(refused(problem));
            }
            clock::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            turn = turn.wrapping_add(1);
        }
    }
}

/// Without the password.
impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionKey").field(&format_args!("{:#x}", self.session)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;
    use zklock_testkit::Server;

    const LONG: Duration = Duration::from_secs(60);

    fn options(server: &Server) -> ClientOptions {
        ClientOptions::new(&server.connect_string()).session_timeout(LONG)
    }

    #[tokio::test]
    async fn a_session_is_ended_from_outside_once() {
        let server = Server::start().unwrap();
        let client = Client::connect(options(&server)).await.unwrap();
        let hold = client.mutex("/lock").unwrap().acquire().await.unwrap();
        let key = client.session_key().await.unwrap();
        assert_eq!(Some(key.session_id()), client.session_id());
        let passed_on = SessionKey::from_bytes(&key.to_bytes()).unwrap();
        assert_eq!(passed_on, key);
        // To ask for the key does nothing to the session.
        hold.confirm().await.unwrap();
        assert_eq!(passed_on.end_session(&options(&server), LONG).await.unwrap(), SessionEnd::Ended);
        // It is another's turn at once.
        let other = Client::connect(options(&server)).await.unwrap();
        let next = other.mutex("/lock").unwrap().acquire_timeout(LONG).await.unwrap();
        assert!(next.token() > hold.token());
        assert_eq!(passed_on.end_session(&options(&server), LONG).await.unwrap(), SessionEnd::WasOver);
        // The client opens the next session, whose key is another.
        let _hold = client.mutex("/other").unwrap().acquire_timeout(LONG).await.unwrap();
        assert_ne!(client.session_key().await.unwrap().session_id(), key.session_id());
    }

    #[tokio::test]
    async fn with_a_wrong_password_nothing_is_ended() {
        let server = Server::start().unwrap();
        let client = Client::connect(options(&server)).await.unwrap();
        let hold = client.mutex("/lock").unwrap().acquire().await.unwrap();
        let mut bytes = client.session_key().await.unwrap().to_bytes();
        bytes[HEAD] ^= 1;
        let key = SessionKey::from_bytes(&bytes).unwrap();
        // The servers do not say which of both is wrong.
        assert_eq!(key.end_session(&options(&server), LONG).await.unwrap(), SessionEnd::WasOver);
        hold.confirm().await.unwrap();
    }

    #[tokio::test]
    async fn nobody_there_is_an_error_in_time() {
        let options = ClientOptions::new("127.0.0.1:1");
        let key = SessionKey::new(7, LONG, vec![1; 16]);
        let error = key.end_session(&options, Duration::from_millis(300)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("the session 0x7 was not ended within 300ms"), "{error}");
    }

    #[test]
    fn the_password_is_not_shown() {
        let key = SessionKey::new(0xabc, LONG, b"a password of 16".to_vec());
        assert_eq!(format!("{key:?}"), "SessionKey(0xabc)");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let bytes = SessionKey::new(5, LONG, vec![1; 16]).to_bytes();
        assert_eq!(SessionKey::from_bytes(&bytes).unwrap().to_bytes(), bytes);
        for length in 0..=HEAD {
            assert!(SessionKey::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        let long = [&bytes[..], &[1; LONGEST]].concat();
        assert!(SessionKey::from_bytes(&long).is_err());
        assert!(SessionKey::from_bytes(&[0; 28]).is_err());
    }
}
