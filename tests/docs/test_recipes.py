"""The recipes of docs/recipes.md do what they promise, each with its host."""

from __future__ import annotations

import http.client
import json
import pathlib
import signal
import typing

from ground import Ground
from guests.programs import Program
from host import PATIENCE, REPORTS, Hosts, until
from page import ADDRESS, ROOT, blocks
from scenes import Attempt

RECIPES = blocks("docs/recipes.md", "python")

ASYNC_REPORTS = f"""{REPORTS}
import asyncio


async def make_report(*words):
    begin()
    while not is_over():
        await asyncio.sleep(0.01)
"""


def install(hosts: Hosts, heading: str, servers: str, *changes: tuple[str, str]) -> None:
    """Writes the files of a recipe, with these servers, and with times that suit a test."""
    files = RECIPES[heading]
    assert any(ADDRESS in text for text in files.values())
    for before, after in changes:
        assert sum(before in text for text in files.values()) == 1, before
    for file, text in files.items():
        text = text.replace(ADDRESS, servers)
        for before, after in changes:
            text = text.replace(before, after)
        hosts.write(file, text)


def test_every_recipe_is_tested() -> None:
    page = (ROOT / "docs/recipes.md").read_text()
    assert page.count("```py") == sum(len(files) for files in RECIPES.values())
    own = pathlib.Path(__file__).read_text()
    for heading in RECIPES:
        assert f'install(hosts, "{heading}"' in own


class Answer(typing.NamedTuple):
    """The answer of a server that speaks HTTP."""

    status: int
    body: typing.Any


def post(address: str, path: str) -> Answer:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request("POST", path)
        response = connection.getresponse()
        return Answer(response.status, json.loads(response.read()))
    finally:
        connection.close()


def install_fastapi(hosts: Hosts, servers: str, connect_timeout: int = 60) -> None:
    # A busy machine may take longer than users want to wait.
    install(hosts, "Web application", servers, ("connect_timeout=2", f"connect_timeout={connect_timeout}, try_timeout=60"))
    hosts.write("reports.py", ASYNC_REPORTS)


def uvicorn(hosts: Hosts) -> tuple[Program, str]:
    """Another host of the application, and its address."""
    program = hosts.python("-m", "uvicorn", "application:app", "--port", "0")
    return program, program.said(r"Uvicorn running on http://(\S+)")[0]


def begun(hosts: Hosts, address: str, path: str) -> Attempt[Answer]:
    """A request that has begun to work."""
    times = len(hosts.begun()) + 1
    request = Attempt(lambda: post(address, path))
    until(lambda: request.done() or len(hosts.begun()) == times, hosts.logs)
    assert not request.done(), request.result()
    return request


def test_fastapi_answers_409_while_another_host_has_the_lock(hosts: Hosts, servers: str) -> None:
    install_fastapi(hosts, servers)
    (one, here), (two, there) = uvicorn(hosts), uvicorn(hosts)
    first = begun(hosts, here, "/reports/sales")
    assert post(there, "/reports/sales").status == 409
    assert post(here, "/reports/sales").status == 409
    # Another report is another lock.
    other = begun(hosts, there, "/reports/stock")
    hosts.let_go()
    assert (first.result(PATIENCE).status, other.result(PATIENCE).status) == (200, 200)
    again = post(there, "/reports/sales")
    assert again.status == 200 and again.body["token"] > first.result(PATIENCE).body["token"]
    assert post(there, "/reports/Sales").status == 422
    for program in (one, two):
        # uvicorn ends with the signal that it has received.
        assert program.finish(by=signal.SIGTERM).status in (0, -signal.SIGTERM)
        assert "Traceback" not in program.log()


def test_fastapi_answers_503_if_the_lock_was_lost(hosts: Hosts, servers: str, ground: Ground, chroot: str) -> None:
    install_fastapi(hosts, servers)
    (_, here), (_, there) = uvicorn(hosts), uvicorn(hosts)
    request = begun(hosts, here, "/reports/sales")
    (node,) = ground.children(f"{chroot}/locks/reports/sales")
    ground(f"delete {chroot}/locks/reports/sales/{node}")
    # Another host has the lock now. The first one does not go on until its report is made.
    other = begun(hosts, there, "/reports/sales")
    answer = request.result(PATIENCE)
    assert answer.status == 503 and "lost" in answer.body["detail"]
    hosts.let_go()
    assert other.result(PATIENCE).status == 200


def test_fastapi_answers_503_if_no_server_answers(hosts: Hosts, ground: Ground, chroot: str) -> None:
    proxy = ground.proxy()
    proxy("refuse", "on")
    install_fastapi(hosts, proxy.hosts + chroot, connect_timeout=5)
    _, here = uvicorn(hosts)
    answer = post(here, "/reports/sales")
    assert answer.status == 503 and "does not answer" in answer.body["detail"]
    proxy("refuse", "off")
    hosts.let_go()
    assert post(here, "/reports/sales").status == 200


# A second in place of more than a session timeout: it may be tried in vain a few times.
SOON_AGAIN = ('"default_retry_delay": 15', '"default_retry_delay": 1')
WORKER = ("-m", "celery", "-A", "tasks", "worker", "--concurrency", "2", "--without-gossip", "--loglevel", "INFO")


def queue(hosts: Hosts, task: str) -> None:
    assert hosts.python("-c", f"import tasks; tasks.{task}").finish().status == 0, hosts.logs()


def test_celery_runs_a_task_in_one_process_at_a_time(hosts: Hosts, servers: str) -> None:
    hosts.write_celery_config()
    install(hosts, "Celery task", servers, SOON_AGAIN)
    worker = hosts.python(*WORKER)
    worker.said(r"celery@\S+ ready")
    for _ in range(2):
        queue(hosts, "report.delay('monday')")
    worker.said("Retry in")
    assert len(hosts.await_work(1)) == 1, hosts.logs()
    hosts.let_go()
    worker.said(r"tasks\.report\[\S+\] succeeded", times=2)
    assert len(hosts.begun()) == 2 and worker.process.pid not in hosts.begun()
    assert worker.finish(by=signal.SIGTERM).status == 0, worker.log()
    assert "Traceback" not in worker.log()


def test_celery_does_the_work_of_a_process_that_was_killed_and_each_order_once(hosts: Hosts, servers: str) -> None:
    # Only the log says which task has which result.
    hosts.write_celery_config("task_ignore_result = False")
    install(hosts, "Celery task", servers, SOON_AGAIN)
    worker = hosts.python(*WORKER)
    worker.said(r"celery@\S+ ready")
    killed = [hosts.python("-c", f"import tasks; tasks.{task}") for task in ("report('monday')", "order('4711')")]
    hosts.await_work(2)
    for task in ("report.delay('monday')", "order.delay('4711')"):
        queue(hosts, task)
        worker.said(rf"tasks\.{task[:5]}\S+ retry: Retry in")
    for program in killed:
        program.finish(by=signal.SIGKILL)
    # Their locks are free when their sessions have timed out.
    hosts.await_work(4)
    hosts.let_go()
    worker.said(r"tasks\.report\[\S+\] succeeded")
    worker.said(r"tasks\.order\[\S+\] succeeded in \S+ 'done'")
    queue(hosts, "order.delay('4711')")
    worker.said(r"tasks\.order\[\S+\] succeeded in \S+ 'done before, by")
    assert len(hosts.begun()) == 4, hosts.logs()
    assert worker.finish(by=signal.SIGTERM).status == 0, worker.log()


def test_celery_retries_a_task_that_has_lost_its_lock(
    hosts: Hosts, servers: str, ground: Ground, chroot: str
) -> None:
    hosts.write("celeryconfig.py", "broker_url = 'memory://'\ntask_always_eager = True\n")
    install(hosts, "Celery task", servers)
    task = hosts.python("-c", "import tasks; tasks.report.delay('monday').get()")
    hosts.await_work(1)
    (node,) = ground.expect_children(f"{chroot}/locks/report-monday", 1)
    ground(f"delete {chroot}/locks/report-monday/{node}")
    # Another host has had the lock in between.
    assert_free(hosts, servers, "/locks/report-monday")
    hosts.let_go()
    assert task.finish().status == 0, task.log()
    assert len(hosts.begun()) == 2


def assert_free(hosts: Hosts, servers: str, path: str) -> None:
    text = f"import zklock\nwith zklock.Client('{servers}') as zk, zk.mutex('{path}', timeout={PATIENCE}): pass"
    assert hosts.python("-c", text).finish().status == 0, hosts.logs()
