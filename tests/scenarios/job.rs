//! Jobs run on one host in each period, by the time of the servers.

use crate::support::embedded::{SESSION, client_with, queue_of};
use crate::support::{SOON, client, operator, says, soon};
use ground::until;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;
use zklock::further::{AfterFailure, Record, RunOutcome};
use zklock::{Begun, Client, ErrorKind, Job, JobSpec, LossReason, Run};
use zklock_testkit::{Fault, Injected, Kind, Server};

const PATH: &str = "/jobs/report";
const RECORD: &str = "/jobs/report/last-run";
const DAY: Duration = Duration::from_secs(86_400);

/// A server on whose clock it is noon of the seventh day, counted from 1970: not the day that it is for the clients. And a host.
async fn at_noon() -> (Server, Client) {
    let server = Server::start().unwrap();
    server.set_date(DAY * 7 + DAY / 2);
    let host = host(&server).await;
    (server, host)
}

async fn host(server: &Server) -> Client {
    client_with(server, SESSION).await
}

fn daily() -> JobSpec {
    JobSpec::new(PATH, DAY).unwrap()
}

fn job(client: &Client) -> Job {
    client.job(&daily()).unwrap()
}

fn next_period_after_failure(client: &Client) -> Job {
    client.job(&daily().after_failure(AfterFailure::Next)).unwrap()
}

#[track_caller]
fn run_of(begun: Begun<Run>) -> Run {
    match begun {
        Begun::Run(run) => run,
        Begun::Done(record) => panic!("nothing is left to do: {record:?}"),
    }
}

#[track_caller]
fn record_of(begun: Begun<Run>) -> Record {
    match begun {
        Begun::Done(record) => record,
        Begun::Run(run) => panic!("it runs: {run:?}"),
    }
}

async fn running(job: &Job) -> Run {
    run_of(soon(job.begin()).await.unwrap())
}

async fn already(job: &Job) -> Record {
    record_of(soon(job.begin()).await.unwrap())
}

fn waiting(job: &Job) -> JoinHandle<Begun<Run>> {
    let job = job.clone();
    tokio::spawn(async move { job.begin().await.unwrap() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_hosts_runs_it_and_the_other_waits_and_sees_what_it_did() {
    let path = "/once/hosts";
    // A period of a thousand years does not end during the test.
    let spec = JobSpec::new(path, 365_000 * DAY).unwrap();
    let (one, other) = (client().await.job(&spec).unwrap(), client().await.job(&spec).unwrap());
    assert_eq!(soon(one.last()).await.unwrap(), None);
    let run = running(&one).await;
    let wait = waiting(&other);
    operator().wait_for_children(path, 3, SOON);
    assert_eq!(soon(other.last()).await.unwrap().unwrap().outcome, RunOutcome::Running);
    let busy = soon(other.begin_timeout(Duration::ZERO)).await.unwrap_err();
    says(&busy, ErrorKind::Timeout, &[path]);
    let token = run.hold().token();
    soon(run.done()).await.unwrap();
    let record = record_of(soon(wait).await.unwrap());
    assert_eq!((record.token, &record.outcome, record.period()), (token, &RunOutcome::Done, 0));
    assert!(record.ended.unwrap() >= record.began);
    assert_eq!(already(&one).await, record);
    assert_eq!(soon(one.last()).await.unwrap(), Some(record));
    let again = soon(run.done()).await.unwrap_err();
    says(&again, ErrorKind::NotHeld, &[path, "is not recorded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_runs_again_in_the_next_period_which_the_servers_clock_begins() {
    let (server, one) = at_noon().await;
    let (one, other) = (job(&one), job(&host(&server).await));
    for day in 7..10 {
        let run = running(&one).await;
        server.set_date(DAY * day + DAY * 3 / 4);
        soon(run.done()).await.unwrap();
        server.set_date(DAY * (day + 1) - Duration::from_secs(60));
        for job in [&other, &one] {
            let record = already(job).await;
            let near = |at: SystemTime, due: Duration| at.duration_since(UNIX_EPOCH + due).unwrap() < SOON;
            let began = if day == 7 { DAY / 2 } else { Duration::ZERO };
            assert!(near(record.began, DAY * day + began), "{record:?}");
            assert!(near(record.ended.unwrap(), DAY * day + DAY * 3 / 4), "{record:?}");
            assert_eq!(record.period(), i64::from(day));
            assert_eq!(record.next(), UNIX_EPOCH + DAY * (day + 1));
        }
        server.set_date(DAY * (day + 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offset_moves_the_boundary() {
    let (server, host) = at_noon().await;
    let job = host.job(&daily().offset(DAY / 2).unwrap()).unwrap();
    soon(running(&job).await.done()).await.unwrap();
    server.set_date(DAY * 8 + DAY / 2 - Duration::from_secs(60));
    assert_eq!(already(&job).await.period(), 7);
    server.set_date(DAY * 8 + DAY / 2);
    soon(running(&job).await.done()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_goes_back_by_less_than_a_period_runs_nothing_twice() {
    let (server, host) = at_noon().await;
    let job = job(&host);
    soon(running(&job).await.done()).await.unwrap();
    for at in [DAY * 7, DAY * 6 + DAY * 3 / 4] {
        server.set_date(at);
        assert_eq!(already(&job).await.period(), 7);
    }
    // A run that has failed is repeated, in the period in which it was.
    server.set_date(DAY * 8);
    soon(running(&job).await.failed("no")).await.unwrap();
    server.set_date(DAY * 8 - Duration::from_secs(1));
    assert_eq!(already(&next_period_after_failure(&host)).await.period(), 8);
    soon(running(&job).await.done()).await.unwrap();
    server.set_date(DAY * 8);
    assert_eq!(already(&job).await.period(), 8);
    server.set_date(DAY * 9);
    soon(running(&job).await.done()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_from_the_future_is_an_error_until_somebody_deletes_it() {
    let (server, host) = at_noon().await;
    let job = job(&host);
    for fails in [false, true] {
        server.set_date(DAY * 3650);
        let run = running(&job).await;
        soon(async { if fails { run.failed("no").await } else { run.done().await } }).await.unwrap();
        for day in [8, 9, 3648] {
            server.set_date(DAY * day);
            let error = soon(job.begin()).await.map(drop).unwrap_err();
            says(&error, ErrorKind::Refused, &[RECORD, "in the future", "clock is wrong", "delete the node"]);
            queue_of(&server, PATH, 1);
        }
        // As the message says.
        assert!(server.delete(RECORD));
        server.set_date(DAY * 9);
        soon(running(&job).await.done()).await.unwrap();
        assert!(server.delete(RECORD));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_length_of_the_period_does_not_keep_it_from_running() {
    let (server, host) = at_noon().await;
    let hourly = host.job(&JobSpec::new(PATH, DAY / 24).unwrap()).unwrap();
    soon(running(&hourly).await.done()).await.unwrap();
    let daily = job(&host);
    assert_eq!(already(&daily).await.period(), 7 * 24 + 12);
    server.set_date(DAY * 8);
    soon(running(&daily).await.done()).await.unwrap();
}

/// Its end comes after that, or is under way. It changes nothing, and is not taken for that of the next run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_session_ends_is_taken_over_in_the_same_period() {
    for is_under_way in [false, true] {
        let (server, one) = at_noon().await;
        let other = host(&server).await;
        let (run, session) = (running(&job(&one)).await, one.session_id().unwrap());
        let token = run.hold().token();
        let wait = waiting(&job(&other));
        queue_of(&server, PATH, 3);
        let frozen =
            is_under_way.then(|| server.inject(Fault::freeze(Kind::Multi).of_session(session).below(PATH)));
        let end = tokio::spawn(async move {
            if !is_under_way {
                // Only then is it certain that it is not sent.
                assert!(soon(run.hold().lost()).await.unwrap().is_some());
            }
            run.done().await
        });
        if let Some(frozen) = frozen {
            has_struck(frozen).await;
        }
        assert!(server.expire(session));
        let taken_over = run_of(soon(wait).await.unwrap());
        assert!(taken_over.hold().token() > token);
        server.thaw();
        let error = soon(end).await.unwrap().unwrap_err();
        // It is lost if the session had ended before the write was sent.
        let is_uncertain = is_under_way && error.kind() == ErrorKind::Uncertain;
        assert!(is_uncertain || matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
        soon(taken_over.done()).await.unwrap();
        let record = already(&job(&one)).await;
        assert_eq!((record.token, record.outcome), (taken_over.hold().token(), RunOutcome::Done));
    }
}

async fn has_struck(injected: Injected) {
    assert!(tokio::task::spawn_blocking(move || injected.wait(SOON)).await.unwrap());
}

/// A server that was cut off may do the write after a read that does not show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_end_is_written_late_is_recorded() {
    let (server, host) = at_noon().await;
    let (run, session) = (running(&job(&host)).await, host.session_id().unwrap());
    // Heartbeats are lost, too.
    server.inject(Fault::lose_request(Kind::Multi).of_session(session).below(PATH).times(1_000));
    let read = server.inject(Fault::freeze(Kind::GetData).of_session(session).below(RECORD));
    let end = tokio::spawn(async move { run.done().await });
    has_struck(read).await;
    server.clear_faults();
    let next = server.inject(Fault::freeze(Kind::Multi).of_session(session).below(PATH));
    server.thaw();
    has_struck(next).await;
    let late = String::from_utf8(server.data(RECORD).unwrap()).unwrap().replace("running", "done");
    server.put(RECORD, late).unwrap();
    server.thaw();
    soon(end).await.unwrap().unwrap();
    assert_eq!(already(&job(&host)).await.outcome, RunOutcome::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_has_lost_the_lock_stays_recorded_as_running_and_learns_that() {
    let (server, host) = at_noon().await;
    for end in [true, false] {
        let run = running(&job(&host)).await;
        assert!(server.delete(run.hold().node()));
        let ended = if end { soon(run.done()).await } else { soon(run.failed("no")).await };
        let parts = [PATH, "stays recorded as running", "counts as failed"];
        says(&ended.unwrap_err(), ErrorKind::Lost(LossReason::NodeDeleted), &parts);
        let record = soon(job(&host).last()).await.unwrap().unwrap();
        assert_eq!((record.outcome, record.ended), (RunOutcome::Running, None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failure_it_runs_again_at_once_or_in_the_next_period() {
    let (server, host) = at_noon().await;
    soon(running(&job(&host)).await.failed("the disk\nis full")).await.unwrap();
    let last = already(&next_period_after_failure(&host)).await;
    assert_eq!(last.outcome, RunOutcome::Failed("the disk is full".into()));
    // One that is dropped has failed as well.
    drop(running(&job(&host)).await);
    assert_eq!(already(&next_period_after_failure(&host)).await.outcome, RunOutcome::Running);
    soon(running(&job(&host)).await.failed("")).await.unwrap();
    server.set_date(DAY * 8);
    soon(running(&next_period_after_failure(&host)).await.done()).await.unwrap();
    assert_eq!(already(&job(&host)).await.period(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_is_an_error_and_no_run() {
    let (server, host) = at_noon().await;
    soon(running(&job(&host)).await.done()).await.unwrap();
    let good = String::from_utf8(server.data(RECORD).unwrap()).unwrap();
    for data in [String::new(), good.replace("job 1", "job 2"), good.replace("done", "doing")] {
        server.put(RECORD, &data).unwrap();
        for error in [
            soon(job(&host).begin()).await.map(drop).unwrap_err(),
            soon(job(&host).last()).await.map(drop).unwrap_err(),
        ] {
            says(&error, ErrorKind::Refused, &[RECORD, "upgrade zklock, or delete that node"]);
        }
        assert_eq!(server.data(RECORD).unwrap(), data.as_bytes());
        queue_of(&server, PATH, 1);
    }
    // As the message says.
    assert!(server.delete(RECORD));
    soon(running(&job(&host)).await.done()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_somebody_else_writes_during_the_run_is_left_alone() {
    let (server, host) = at_noon().await;
    let run = running(&job(&host)).await;
    server.put(RECORD, "hands off").unwrap();
    says(&soon(run.done()).await.unwrap_err(), ErrorKind::Conflict, &[PATH, "is not recorded"]);
    assert_eq!(server.data(RECORD).unwrap(), b"hands off");
    queue_of(&server, PATH, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_outlives_the_container_that_a_lock_leaves_behind() {
    let server = Server::builder().manual_clock().start().unwrap();
    server.set_date(DAY * 7);
    let host = host(&server).await;
    soon(running(&job(&host)).await.done()).await.unwrap();
    let lock = host.mutex("/jobs/other").unwrap();
    soon(soon(lock.acquire()).await.unwrap().release()).await.unwrap();
    let reaped = || {
        server.advance(Duration::from_secs(60));
        server.children("/jobs/other").is_none()
    };
    assert!(until(SOON, reaped));
    already(&job(&host)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_message_is_lost_it_runs_once_and_that_is_recorded() {
    let faults = [Fault::lose_request, Fault::cut_before_reply, Fault::cut_after_reply];
    for fault in faults {
        for (kind, nth) in
            (1..=4).flat_map(|nth| [(Kind::Multi, nth), (Kind::Create, nth), (Kind::GetData, nth)])
        {
            let (server, host) = at_noon().await;
            server.inject(fault(kind).nth(nth));
            let run = running(&job(&host)).await;
            soon(run.done()).await.unwrap();
            server.clear_faults();
            let record = already(&job(&host)).await;
            assert_eq!((record.token, record.outcome), (run.hold().token(), RunOutcome::Done));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_once_the_lock_is_held_ends_the_wait() {
    for nth in 1..=2 {
        let (server, host) = at_noon().await;
        soon(running(&job(&host)).await.failed("")).await.unwrap();
        server.inject(Fault::drop_reply(Kind::GetData).nth(nth).below(PATH).times(1000));
        let error = soon(job(&host).begin_timeout(Duration::from_millis(300))).await.map(drop).unwrap_err();
        says(&error, ErrorKind::Unreachable, &[PATH, "300ms"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_before_it_runs_has_not_used_up_the_period() {
    for nth in 1..=4 {
        let (server, one) = at_noon().await;
        let other = host(&server).await;
        server.inject(Fault::delay_reply(Kind::Multi, Duration::from_secs(1)).nth(nth).below(PATH));
        let begun = soon(next_period_after_failure(&one).begin_timeout(Duration::from_millis(300))).await;
        if begun.map(run_of).is_err() {
            drop(running(&next_period_after_failure(&other)).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_version_3_4_do() {
    let server = Server::builder().like("3.4").unwrap().start().unwrap();
    let host = host(&server).await;
    let spec = JobSpec::new(PATH, 365_000 * DAY).unwrap();
    soon(running(&host.job(&spec).unwrap()).await.done()).await.unwrap();
    already(&host.job(&spec).unwrap()).await;
}

#[test]
fn periods_and_offsets_that_cannot_be_are_refused() {
    let refused = |spec: Result<JobSpec, zklock::Error>, parts: &[&str]| {
        says(&spec.unwrap_err(), ErrorKind::InvalidInput, parts);
    };
    refused(JobSpec::new("jobs", DAY), &["jobs", "relative"]);
    refused(JobSpec::new(PATH, Duration::from_millis(999)), &[PATH, "999ms", "from a second"]);
    refused(JobSpec::new(PATH, Duration::MAX), &[PATH, "1,000 years"]);
    refused(daily().offset(DAY), &[PATH, "less than the period"]);
}
