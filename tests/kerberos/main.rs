//! Logging in by Kerberos, with the test's own KDC and keytabs: `tests/run kerberos`.
//!
//! This is a separate program, so that the scenarios need not be compiled once more with that feature.
//!
//! Kerberos reads its settings from the environment of the process, so each client is a separate process.

mod support;

use crate::support::child::{Process, orders, say};
use crate::support::texts::{are_documented, line};
use crate::support::{SESSION, SOON};
use ground::kerberos::{Kdc, REALM};
use ground::{Ensemble, until};
use std::path::Path;
use std::time::Duration;
use zklock::further::{Access, Credentials};
use zklock::{Client, ClientOptions, ErrorKind};
use zookeeper_client::SaslOptions;

/// The host in the servers' principal, which cannot contain an address. Clients that connect to an address have to state it.
const HOST: &str = "localhost";
const SERVICE: &str = "ZKLOCK_CHILD_SERVICE";
/// How long the clients of this module try to connect.
const PATIENCE: Duration = Duration::from_secs(3);

/// A realm, and servers in it that only accept clients with a ticket.
struct Realm {
    kdc: Kdc,
    servers: Ensemble,
}

impl Realm {
    fn new() -> Self {
        let kdc = Kdc::start(&["ann", "eve", "zookeeper/localhost", "other/localhost"]);
        let servers = kdc.servers("zookeeper/localhost").tick(Duration::from_millis(200));
        let servers = servers.configure("sessionRequireClientSASLAuth=true").start();
        Self { kdc, servers }
    }

    /// A client's process, with this ticket or keytab.
    fn client(&self, test: &str, hosts: &str, service: &str, shows: Shows<'_>) -> Process {
        let configuration = self.kdc.configuration();
        let nowhere = self.kdc.path("nothing");
        let mut environment = vec![
            ("KRB5_CONFIG", configuration.to_str().unwrap()),
            (SERVICE, service),
            // Kerberos' own messages are compared, so they must be in English.
            ("LC_ALL", "C"),
        ];
        let (cache, keytab) = match shows {
            Shows::Cache(cache) => (cache, nowhere.as_path()),
            Shows::Keytab(keytab, cache) => (cache, keytab),
            Shows::Nothing => (nowhere.as_path(), nowhere.as_path()),
        };
        environment.push(("KRB5CCNAME", cache.to_str().unwrap()));
        environment.push(("KRB5_CLIENT_KTNAME", keytab.to_str().unwrap()));
        let test = format!("{}::{test}", module_path!());
        Process::start_with(&test, hosts, "/kerberos", SESSION, &environment)
    }
}

/// The proof that a client shows.
#[derive(Clone, Copy)]
enum Shows<'a> {
    Nothing,
    Cache(&'a Path),
    /// A keytab, and the cache that it fills.
    Keytab(&'a Path, &'a Path),
}

fn login(options: ClientOptions) -> ClientOptions {
    let is_connected_to = std::env::var("ZKLOCK_CHILD_HOSTS").unwrap().starts_with(HOST);
    let stated = (!is_connected_to).then_some(HOST);
    let kerberos = Credentials::kerberos(&std::env::var(SERVICE).unwrap(), stated).unwrap();
    options.credentials(kerberos).access(Access::CreatorAll).connect_timeout(PATIENCE)
}

#[tokio::test]
#[ignore = "a process that a test starts"]
async fn says_how_it_connects() {
    let Some((options, _)) = orders() else { return };
    let connected = Client::connect(login(options)).await;
    say(line("case", connected.map(drop)));
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that a test starts"]
async fn holds_until_it_is_lost_and_again() {
    let Some((options, path)) = orders() else { return };
    let hosts = std::env::var("ZKLOCK_CHILD_HOSTS").unwrap();
    let client = Client::connect(login(options)).await.unwrap();
    let hold = client.mutex(&path).unwrap().acquire_timeout(SOON).await.unwrap();
    let operator = zookeeper_client::Client::connector().with_sasl(SaslOptions::gssapi().with_hostname(HOST));
    let operator = operator.connect(&hosts).await.unwrap();
    say(format_args!("{:?}", operator.get_acl(hold.node()).await.unwrap().0));
    drop(operator);
    hold.lost().await;
    say("lost");
    let hold = client.mutex(&path).unwrap().acquire_timeout(SOON).await.unwrap();
    say(format_args!("holds again in session {}", client.stats().sessions));
    hold.release().await.unwrap();
    std::future::pending::<()>().await;
}

#[test]
fn what_is_no_service_and_no_host_is_refused() {
    for (service, host) in [("", None), ("zookeeper/zk1", None), ("zookeeper", Some("")), ("a", Some("b@C"))]
    {
        let Err(error) = Credentials::kerberos(service, host) else { panic!("{service} {host:?}") };
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn each_text_is_that_of_the_documentation() {
    let realm = Realm::new();
    let kdc = &realm.kdc;
    let secured = realm.servers.connect_string();
    let by_password = Ensemble::builder().sasl(&[("ann", "s3cret")]).start();
    let open = ground::shared().connect_string();
    let ann = kdc.ticket("ann", &[]);
    let short = kdc.ticket("ann", &["-l", "1s"]);
    let forwardable = kdc.ticket("ann", &["-f"]);
    let (keytab, filled) = (kdc.keytab("ann"), kdc.path("filled.cache"));
    let (unknown, unfilled) = (kdc.keytab("eve"), kdc.path("unfilled.cache"));
    kdc.forget("eve");
    kdc.wait_until_expired(&short);
    let mut lines = Vec::new();
    for (case, hosts, service, shows) in [
        ("all is right, with a ticket", &secured, "zookeeper", Shows::Cache(&ann)),
        ("all is right, with a keytab", &secured, "zookeeper", Shows::Keytab(&keytab, &filled)),
        ("neither ticket nor keytab", &secured, "zookeeper", Shows::Nothing),
        ("ticket expired", &secured, "zookeeper", Shows::Cache(&short)),
        ("ticket that could be handed on", &secured, "zookeeper", Shows::Cache(&forwardable)),
        ("keytab of an unknown principal", &secured, "zookeeper", Shows::Keytab(&unknown, &unfilled)),
        ("service that the KDC does not know", &secured, "zoo", Shows::Cache(&ann)),
        ("service that is not that of the servers", &secured, "other", Shows::Cache(&ann)),
        ("servers log in by passwords alone", &by_password.connect_string(), "zookeeper", Shows::Cache(&ann)),
        ("server not set up for SASL", &open, "zookeeper", Shows::Cache(&ann)),
    ] {
        let said = realm.client("says_how_it_connects", hosts, service, shows).line();
        lines.push((case, said.replace(hosts, "HOST:PORT")));
    }
    // Without a KDC, a ticket that is already in the cache would be enough.
    let nobody = Realm::new();
    for (case, stop) in [
        ("no answer from the KDC", ground::Process::pause as fn(&ground::Process)),
        ("no KDC there", ground::Process::stop),
    ] {
        let ann = nobody.kdc.ticket("ann", &[]);
        stop(&nobody.kdc);
        let hosts = nobody.servers.connect_string();
        let client = nobody.client("says_how_it_connects", &hosts, "zookeeper", Shows::Cache(&ann));
        lines.push((case, client.line().replace(&hosts, "HOST:PORT")));
        nobody.kdc.resume();
    }
    let written = |(case, said): (&str, String)| {
        let said = said.replacen("case", case, 1).replace(&format!("{PATIENCE:?}"), "TIMEOUT");
        let said = said.replace(kdc.path("nothing").to_str().unwrap(), "/tmp/krb5cc_1000");
        said.replace(&format!("@{HOST}"), "@HOST")
            .replace(&format!("of \"{HOST}\""), "of \"HOST\"")
            .replace(&format!("/{HOST}@"), "/HOST@")
    };
    are_documented("Kerberos\n", lines.into_iter().map(written).collect());
}

#[test]
fn who_is_logged_in_is_the_creator_and_logs_in_again() {
    let realm = Realm::new();
    let (keytab, cache) = (realm.kdc.keytab("ann"), realm.kdc.path("again.cache"));
    // Nobody states a host here: it is that of the connection.
    let hosts = realm.servers.connect_string().replace("127.0.0.1", HOST);
    let shows = Shows::Keytab(&keytab, &cache);
    let client = realm.client("holds_until_it_is_lost_and_again", &hosts, "zookeeper", shows);
    let list = client.line();
    assert!(list.contains("\"sasl\"") && list.contains(&format!("\"ann@{REALM}\"")), "{list}");
    // The session is gone with the servers' data, and the ticket is gone as well, so the client gets a new one with the keytab.
    let server = realm.servers.server(0);
    server.stop();
    assert_eq!(client.line(), "lost");
    std::fs::remove_dir_all(server.home().join("data/version-2")).unwrap();
    std::fs::remove_file(&cache).unwrap();
    server.start();
    server.wait_until_serving(SOON);
    assert_eq!(client.line(), "holds again in session 2");
    assert!(until(SOON, || cache.exists()), "the ticket is in the cache");
}
