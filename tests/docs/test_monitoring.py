"""docs/monitoring.md: its programs, its alerts, and its board."""

from __future__ import annotations

import contextlib
import json
import logging
import pathlib
import re
import shutil
import socket
import subprocess
import typing
import urllib.parse
import urllib.request

import pytest
from guests.programs import logged
from host import Hosts, until
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from page import ADDRESS, ROOT, ZKLOCK, blocks, changed
from prometheus_client import CollectorRegistry, start_http_server

import zklock
import zklock.prometheus

PAGE = "docs/monitoring.md"
BOARD = ROOT / "docs/monitoring/zklock.grafana.json"
RULES = ROOT / "docs/monitoring/zklock.rules.yml"
CASES = ROOT / "tests/docs/zklock.rules.test.yml"


def python(file: str) -> str:
    (text,) = [found[file] for found in blocks(PAGE, "python").values() if file in found]
    return text


@pytest.mark.parametrize(("file", "says"), [("page.py", "['zklock_grants_total 1']"), ("telemetry.py", "")], ids=["page", "telemetry"])
def test_program_of_the_page_runs(file: str, says: str, servers: str, hosts: Hosts) -> None:
    hosts.write(file, changed(python(file), ADDRESS, servers))
    hosts.python("-W", "error", file).ends_well(says)


def test_opentelemetry_gets_the_figures_of_each_lock(servers: str) -> None:
    reader = InMemoryMetricReader()
    names: dict[str, typing.Any] = {}
    exec(python("telemetry.py").partition("\nwith ")[0], names)
    meter = MeterProvider([reader]).get_meter("reports")

    def exported() -> dict[str, float]:
        data = reader.get_metrics_data()
        assert data is not None
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                assert isinstance(point, NumberDataPoint) and point.attributes == {"lock": "report"}
                found[metric.name] = point.value
        return found

    with zklock.Client(servers) as zk:
        names["observe"](zk, meter)
        with zk.mutex("/locks/report", metrics_name="report"):
            held = exported()
        assert held.pop("zklock.lock.oldest_hold") > 0
        assert held == {"zklock.lock.held": 1, "zklock.lock.waiting": 0, "zklock.lock.grants": 1}
        assert exported()["zklock.lock.held"] == 0


def test_opentelemetry_gets_the_log(servers: str) -> None:
    """As docs/monitoring.md says of the log."""
    handlers = pytest.importorskip("opentelemetry.instrumentation.logging.handler")
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))

    def exported() -> str:
        records = exporter.get_finished_logs()
        return "".join(f"{one.instrumentation_scope.name} {one.log_record.severity_text} {one.log_record.body}\n" for one in records)

    with logged(handlers.LoggingHandler(logger_provider=provider).emit, logging.INFO):
        with zklock.Client(servers) as zk, zk.mutex("/locks/report"):
            # Another thread passes the messages on.
            until(lambda: re.search(r"^zklock INFO session opened session=0x", exported(), re.MULTILINE), exported)


def promtool(*words: str, cwd: pathlib.Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *words], cwd=cwd, input=given, capture_output=True, text=True, timeout=100, check=False)


def test_each_alert_is_a_rule_that_fires_on_a_bad_night_and_not_before(tmp_path: pathlib.Path) -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    cases = CASES.read_text()
    for alert in alerts:
        assert len(re.findall(rf"alertname: {alert}\b", cases)) == 2, alert
    for word, file in (("check", RULES), ("test", CASES)):
        shutil.copy(file, tmp_path)
        done = promtool(word, "rules", file.name, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    # Without an alert, its test fails.
    for alert in alerts:
        (tmp_path / RULES.name).write_text(re.sub(rf"- alert: {alert}\b", f"- alert: {alert}Not", RULES.read_text()))
        assert promtool("test", "rules", CASES.name, cwd=tmp_path).returncode != 0, alert


def test_promtool_takes_the_text_of_two_clients(servers: str, tmp_path: pathlib.Path) -> None:
    with zklock.Client(servers) as zk, zk.mutex("/locks/report", metrics_name='the "report"'):
        page = zklock.prometheus_text({"orders": zk, "billing": zk})
    done = promtool("check", "metrics", cwd=tmp_path, given=page)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\bzklock_\w+", text))


def test_rules_board_and_page_name_metrics_that_there_are(servers: str) -> None:
    with zklock.Client(servers) as zk, zk.mutex("/locks/report", metrics_name="report"):
        page = zk.prometheus()
    families = dict(re.findall(r"# TYPE (\w+) (\w+)", page))
    there = set(families) | {f"{name}_{of}" for name, kind in families.items() if kind == "histogram" for of in ("bucket", "sum", "count")}
    for text in (RULES.read_text(), BOARD.read_text()):
        assert metrics_in(text) and metrics_in(text) <= there
    assert families.keys() <= metrics_in((ROOT / PAGE).read_text()), "each is described on the page"


def answer(url: str) -> str:
    """What a server answers; nothing while it is not ready."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=30) as page:
        return typing.cast(bytes, page.read()).decode()
    return ""


def started(hosts: Hosts, *words: str) -> str:
    """Starts a program that serves metrics. Gives its address."""
    with socket.socket() as free:
        # It stays bound until the program has bound it, too: nobody else is given the port.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        hosts.start(*words, f"--web.listen-address={address}")
        until(lambda: answer(f"http://{address}/metrics"), hosts.logs)
    return f"http://{address}"


def test_node_exporter_takes_the_files_of_two_jobs(servers: str, tmp_path: pathlib.Path, hosts: Hosts) -> None:
    folder = tmp_path / "textfiles"
    for job in ("report", "clean-up"):
        folder.mkdir(exist_ok=True)
        words = ["run", "--mutex", f"/locks/{job}", "--metrics-file", str(folder / f"{job}.prom"), "--", "true"]
        assert hosts.start(ZKLOCK, "--hosts", servers, *words).finish().status == 0, hosts.logs()
    only = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={folder}"]
    page = answer(started(hosts, "prometheus-node-exporter", *only) + "/metrics")
    assert "\nnode_textfile_scrape_error 0\n" in page
    for job in ("report", "clean-up"):
        assert f'\nzklock_lock_hold_seconds_count{{client="{job}",lock="{job}"}} 1\n' in page
        # The alert about a run that was killed finds the lock in the name of the file.
        assert f'\nnode_textfile_mtime_seconds{{file="{folder}/{job}.prom"}} ' in page


@contextlib.contextmanager
def prometheus(hosts: Hosts, client: zklock.Client) -> typing.Iterator[typing.Callable[[str], typing.Any]]:
    """Prometheus, which scrapes a client once a second. Yields what tells the series that answer a question."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(zklock.prometheus.Collector(client))
    server, serving = start_http_server(0, addr="127.0.0.1", registry=registry)
    scrapes = [{"job_name": "program", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}]
    file = hosts.write("prometheus.yml", json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes}))
    try:
        url = started(hosts, "prometheus", f"--config.file={file}", f"--storage.tsdb.path={hosts.folder('data')}") + "/api/v1/query?query="
        none = '{"data": {"result": []}}'
        yield lambda question: json.loads(answer(url + urllib.parse.quote(question)) or none)["data"]["result"]
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def test_prometheus_answers_every_question_of_the_board(servers: str, hosts: Hosts) -> None:
    # The choices and times that Grafana would fill in.
    filled = {"$instance": ".*", "$lock": ".*", "$__rate_interval": "10s", "$__range": "1m"}
    with zklock.Client(servers, session_timeout=4) as zk, prometheus(hosts, zk) as ask:
        with zk.mutex("/locks/report", metrics_name="report").hold():
            with pytest.raises(zklock.Timeout):
                zk.mutex("/locks/report", timeout=0.1, metrics_name="report").hold()
            for panel in json.loads(BOARD.read_text())["panels"]:
                for target in panel["targets"]:
                    question = target["expr"]
                    for variable, value in filled.items():
                        question = question.replace(variable, value)
                    until(lambda question=question: bool(ask(question)), lambda question=question: question)
                    if panel["title"] == "Held now":
                        held = ask(question)
            assert [series["metric"]["lock"] for series in held] == ["report"]
