//! The network between the clients' sockets and the simulated servers: it takes time, stops and breaks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use ground::Dice;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::plan::SERVERS;
use crate::replicas::Replicas;

const PORT: u16 = 2181;
/// How long to wait if nothing is due.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// As soon as it is taken out, nobody can connect, even while a task has it.
type Listener = Rc<RefCell<Option<TcpListener>>>;

/// The way from one client to one server.
#[derive(Default)]
struct Way {
    listener: Listener,
    accepting: Option<AbortHandle>,
    stops_requests: bool,
    stops_replies: bool,
    delay: usize,
}

struct Link {
    client: usize,
    server: usize,
    stream: Rc<TcpStream>,
    /// When the last parcel on its way arrives: nothing overtakes it.
    to_server: Duration,
    to_client: Duration,
    /// Parcels that wait until they may pass.
    held: Vec<((Duration, u64), Parcel)>,
}

/// Something on its way.
enum Parcel {
    Request(u64, Vec<u8>),
    /// The client has closed it.
    Closed(u64),
    /// `None`: the server has closed it.
    Reply(u64, Option<Vec<u8>>),
}

impl Parcel {
    fn connection(&self) -> u64 {
        match self {
            Self::Request(connection, _) | Self::Closed(connection) | Self::Reply(connection, _) => {
                *connection
            }
        }
    }
}

pub(crate) struct Network {
    pub(crate) replicas: Replicas,
    begun: Instant,
    dice: Dice,
    ways: BTreeMap<(usize, usize), Way>,
    links: BTreeMap<u64, Link>,
    last_link: u64,
    parcels: BTreeMap<(Duration, u64), Parcel>,
    last_parcel: u64,
    /// A hash of everything that has passed: runs that differ in anything have different hashes.
    trace: DefaultHasher,
    pub(crate) requests: u64,
    /// Wakes the timekeeper when there is something to do.
    pub(crate) stir: Rc<Notify>,
}

pub(crate) type Shared = Rc<RefCell<Network>>;

/// The address at which a client finds a server.
fn address(client: usize, server: usize) -> Ipv4Addr {
    let byte = |number: usize| u8::try_from(number + 1).unwrap_or(0);
    Ipv4Addr::new(127, 1, byte(client), byte(server))
}

pub(crate) fn hosts(client: usize) -> String {
    let host = |server| format!("{}:{PORT}", address(client, server));
    (0..SERVERS).map(host).collect::<Vec<_>>().join(",")
}

fn listen(client: usize, server: usize) -> io::Result<TcpListener> {
    let listener = StdListener::bind((address(client, server), PORT))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

impl Network {
    pub(crate) fn new(replicas: Replicas, dice: Dice) -> Shared {
        Rc::new(RefCell::new(Self {
            replicas,
            begun: Instant::now(),
            dice,
            ways: BTreeMap::new(),
            links: BTreeMap::new(),
            last_link: 0,
            parcels: BTreeMap::new(),
            last_parcel: 0,
            trace: DefaultHasher::new(),
            requests: 0,
            stir: Rc::default(),
        }))
    }

    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn trace(&self) -> u64 {
        self.trace.finish()
    }

    pub(crate) fn instant(&self, time: Duration) -> Instant {
        self.begun + time.min(self.now() + LONGEST_WAIT)
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Duration {
        let next = self.parcels.keys().next().map_or(Duration::MAX, |(time, _)| *time);
        next.min(self.replicas.next())
    }

    /// Time has passed: delivers the parcels that are due, and their answers.
    pub(crate) fn step(&mut self) {
        let now = self.now();
        loop {
            self.replicas.advance(now);
            for (connection, reply) in self.replicas.effects() {
                self.send(now, Parcel::Reply(connection, reply));
            }
            let Some(entry) = self.parcels.first_entry().filter(|entry| entry.key().0 <= now) else {
                if self.replicas.next() <= now {
                    continue;
                }
                return;
            };
            let (key, parcel) = entry.remove_entry();
            self.deliver(now, key, parcel);
        }
    }

    fn deliver(&mut self, now: Duration, key: (Duration, u64), parcel: Parcel) {
        let connection = parcel.connection();
        let Some(link) = self.links.get_mut(&connection) else { return };
        let Some(way) = self.ways.get(&(link.client, link.server)) else { return };
        let is_stopped = match parcel {
            Parcel::Request(..) | Parcel::Closed(_) => way.stops_requests,
            Parcel::Reply(..) => way.stops_replies,
        };
        if is_stopped {
            link.held.push((key, parcel));
            return;
        }
        match parcel {
            Parcel::Request(_, frame) => {
                (now, connection, &frame).hash(&mut self.trace);
                self.requests += 1;
                self.replicas.receive(connection, frame);
            }
            Parcel::Closed(_) => {
                self.replicas.disconnect(connection);
                self.links.remove(&connection);
            }
            Parcel::Reply(_, Some(frame)) => {
                (now, connection, &frame).hash(&mut self.trace);
                // If the client has closed the connection, nobody reads this.
                let _ = link.stream.try_write(&frame);
            }
            Parcel::Reply(_, None) => self.drop_link(connection),
        }
    }

    /// Puts something on its way.
    fn send(&mut self, now: Duration, parcel: Parcel) {
        let Some(link) = self.links.get_mut(&parcel.connection()) else { return };
        let longest = self.ways.get(&(link.client, link.server)).map_or(0, |way| way.delay);
        let delay = Duration::from_millis(u64::try_from(self.dice.below(longest + 2)).unwrap_or(0));
        let arrives = match parcel {
            Parcel::Reply(..) => &mut link.to_client,
            _ => &mut link.to_server,
        };
        *arrives = (*arrives).max(now + delay);
        self.last_parcel += 1;
        self.parcels.insert((*arrives, self.last_parcel), parcel);
        self.stir.notify_one();
    }

    /// Ends a connection at the client.
    fn drop_link(&mut self, connection: u64) {
        if let Some(link) = self.links.remove(&connection) {
            let _ = rustix::net::shutdown(&*link.stream, rustix::net::Shutdown::Both);
        }
    }

    fn links_of(&self, client: usize) -> Vec<u64> {
        self.links
            .iter()
            .filter(|(_, link)| link.client == client)
            .map(|(connection, _)| *connection)
            .collect()
    }

    /// Ends the connections of a client, and tells the servers unless they must find out by themselves.
    pub(crate) fn cut(&mut self, client: usize, servers_know: bool) {
        for connection in self.links_of(client) {
            self.drop_link(connection);
            if servers_know {
                self.replicas.disconnect(connection);
            }
        }
        self.stir.notify_one();
    }

    pub(crate) fn freeze(&mut self, client: usize, requests: bool, replies: bool) {
        for server in 0..SERVERS {
            let way = self.ways.entry((client, server)).or_default();
            (way.stops_requests, way.stops_replies) = (requests, replies);
        }
        // In the order in which they came, and ahead of everything that came later.
        let links = self.links.values_mut().filter(|link| link.client == client);
        self.parcels.extend(links.flat_map(|link| std::mem::take(&mut link.held)));
        self.stir.notify_one();
    }

    pub(crate) fn delay(&mut self, client: usize, longest: usize) {
        for server in 0..SERVERS {
            self.ways.entry((client, server)).or_default().delay = longest;
        }
    }
}

/// Sets whether a client can connect to the servers.
pub(crate) fn open_all(network: &Shared, client: usize, is_open: bool) {
    for server in 0..SERVERS {
        open(network, client, server, is_open).expect("a name that nobody has");
    }
}

fn open(network: &Shared, client: usize, server: usize, is_open: bool) -> io::Result<()> {
    let mut all = network.borrow_mut();
    let way = all.ways.entry((client, server)).or_default();
    if !is_open {
        *way.listener.borrow_mut() = None;
        way.accepting.iter().for_each(AbortHandle::abort);
    } else if way.listener.borrow().is_none() {
        *way.listener.borrow_mut() = Some(listen(client, server)?);
        let (listener, network) = (way.listener.clone(), network.clone());
        let accepting = tokio::task::spawn_local(async move {
            while let Some(stream) = poll_fn(|context| poll_accept(&listener, context)).await {
                accept(&network, client, server, stream);
            }
        });
        way.accepting = Some(accepting.abort_handle());
    }
    Ok(())
}

fn poll_accept(listener: &Listener, context: &mut Context<'_>) -> Poll<Option<TcpStream>> {
    let listener = listener.borrow();
    let Some(listener) = &*listener else { return Poll::Ready(None) };
    listener.poll_accept(context).map(|accepted| accepted.ok().map(|(stream, _)| stream))
}

fn accept(network: &Shared, client: usize, server: usize, stream: TcpStream) {
    let mut all = network.borrow_mut();
    all.last_link += 1;
    let (connection, now) = (all.last_link, all.now());
    if !all.replicas.connect(server, connection) {
        return;
    }
    let stream = Rc::new(stream);
    let link =
        Link { client, server, stream: stream.clone(), to_server: now, to_client: now, held: Vec::new() };
    all.links.insert(connection, link);
    drop(all);
    tokio::task::spawn_local(read(network.clone(), connection, stream));
}

/// Puts the bytes that a client sends on their way.
async fn read(network: Shared, connection: u64, stream: Rc<TcpStream>) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if stream.readable().await.is_err() {
            break;
        }
        match stream.try_read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => break,
        }
        let mut all = network.borrow_mut();
        let now = all.now();
        while let Some((head, rest)) = bytes.split_first_chunk() {
            let length = u32::from_be_bytes(*head) as usize;
            let Some(frame) = rest.get(..length).map(<[u8]>::to_vec) else { break };
            bytes.drain(..4 + length);
            all.send(now, Parcel::Request(connection, frame));
        }
    }
    let mut all = network.borrow_mut();
    let now = all.now();
    all.send(now, Parcel::Closed(connection));
}
