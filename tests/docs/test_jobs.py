"""The recipes of docs/jobs.md run a job once, on one host."""

from __future__ import annotations

import signal
import typing

import pytest
from host import Hosts
from page import ADDRESS, ZKLOCK, blocks, changed, texts, unit
from zklock.testing import Server

JOBS = blocks("docs/jobs.md", "python")
# Otherwise a day may end during a test.
PERIOD = ('every="1d"', 'every="300000d"')


def install(hosts: Hosts, heading: str, file: str, servers: str, *changes: tuple[str, str]) -> None:
    text = JOBS[heading][file].replace(ADDRESS, servers)
    for before, after in (PERIOD, *changes):
        text = changed(text, before, after)
    hosts.write(file, text)


def test_the_block_runs_on_one_host(hosts: Hosts, servers: str) -> None:
    install(hosts, "Python", "report.py", servers)
    hosts.let_go()
    first = hosts.python("report.py")
    assert first.finish().status == 0, first.log()
    second = hosts.python("report.py")
    assert second.finish().status == 0, second.log()
    second.said("done before, by")
    assert hosts.begun() == [first.process.pid]


def test_celery_runs_the_tasks_of_two_beats_once_in_each_period(hosts: Hosts) -> None:
    hosts.write_celery_config()
    changes = (("crontab(hour=0, minute=0)", "0.2"), ("default_retry_delay=60", "default_retry_delay=0.5"))
    period = 300_000 * 86_400
    with Server() as server:
        install(hosts, "Celery beat", "schedule_tasks.py", server.hosts, *changes)
        server.set_date(period)
        celery = ("-m", "celery", "-A", "schedule_tasks")
        worker = hosts.python(*celery, "worker", "--concurrency", "2", "--without-gossip", "--loglevel", "INFO")
        worker.said(r"celery@\S+ ready")
        beat = (*celery, "beat", "--loglevel", "INFO", "--pidfile", "", "--schedule")
        beats = [hosts.python(*beat, f"schedule-{one}") for one in "ab"]
        hosts.await_work(1)
        # Tasks that come meanwhile are tried again.
        worker.said("Retry in")
        hosts.let_go()
        for periods in (1, 2, 3):
            server.set_date(periods * period)
            hosts.await_work(periods)
            for one in beats:
                sent = one.log().count("Sending due task")
                one.said("Sending due task", times=sent + 3)
            # Those that were queued meanwhile find it done.
            done = worker.log().count(" succeeded in ")
            worker.said(" succeeded in ", times=done + 10)
            assert len(hosts.begun()) == periods, hosts.logs()
        for one in (*beats, worker):
            assert one.finish(by=signal.SIGTERM).status == 0, one.log()
    assert "Traceback" not in hosts.logs()


def of_cron() -> tuple[str, str]:
    variable, line = texts("docs/jobs.md", "cron").splitlines()
    assert line.startswith("0 0 * * * reports ")
    return variable, line.split(maxsplit=6)[6]


def of_systemd() -> tuple[str, str]:
    service = unit(blocks("docs/jobs.md", "ini")["systemd"]["report.service"])["Service"]
    return service["Environment"], service["ExecStart"]


@pytest.mark.parametrize("of", [of_cron, of_systemd])
def test_the_line_of_cron_and_of_a_unit_run_a_command_on_one_host(
    hosts: Hosts, servers: str, of: typing.Callable[[], tuple[str, str]]
) -> None:
    variable, command = of()
    job = hosts.write("report", "#!/usr/bin/env python3\nimport reports\nreports.make_report()\n")
    job.chmod(0o755)
    for before, after in (
        ("/usr/local/bin/zklock", ZKLOCK),
        ("/usr/local/bin/report", str(job)),
        ("--every 1d", "--every 300000d"),
    ):
        command = changed(command, before, after)
    # As both do.
    words = ("env", changed(variable, ADDRESS, servers), "/bin/sh", "-c", command)
    first = hosts.start(*words)
    hosts.await_work(1)
    second = hosts.start(*words)
    hosts.let_go()
    assert (first.finish().status, second.finish().status) == (0, 0), hosts.logs()
    assert len(hosts.begun()) == 1
    assert ("is done in this period" in second.log()) == ("--quiet" not in command)
