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
import sys
import typing
import urllib.parse
import urllib.request

import pytest
from host import until
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


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("page.py", "['zklock_grants_total 1']"),
        ("telemetry.py", ""),
    ],
    ids=["page", "telemetry"],
)
def test_program_of_the_page_runs(file: str, says: str, servers: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / file).write_text(changed(python(file), ADDRESS, servers))
    done = subprocess.run([sys.executable, "-W", "error", file], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, says, "")


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
    handler = handlers.LoggingHandler(logger_provider=provider)
    log = logging.getLogger("zklock")
    log.setLevel(logging.INFO)
    log.addHandler(handler)

    def exported() -> str:
        records = exporter.get_finished_logs()
        return "".join(f"{one.instrumentation_scope.name} {one.log_record.severity_text} {one.log_record.body}\n" for one in records)

    try:
        with zklock.Client(servers) as zk, zk.mutex("/locks/report"):
            # Another thread passes the messages on.
            until(lambda: bool(re.search(r"^zklock INFO session opened session=0x", exported(), re.MULTILINE)), exported)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


def promtool(*words: str, cwd: pathlib.Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *words], cwd=cwd, input=given, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def rules(tmp_path: pathlib.Path) -> pathlib.Path:
    for file in (RULES, CASES):
        shutil.copy(file, tmp_path)
    return tmp_path


def test_alerts_are_rules_that_prometheus_takes(rules: pathlib.Path) -> None:
    done = promtool("check", "rules", RULES.name, cwd=rules)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_on_a_bad_night_and_not_before(rules: pathlib.Path) -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    cases = CASES.read_text()
    for alert in alerts:
        assert len(re.findall(rf"alertname: {alert}\b", cases)) == 2, alert
    done = promtool("test", "rules", CASES.name, cwd=rules)
    assert done.returncode == 0, done.stdout + done.stderr
    # Without an alert, its test fails.
    file = rules / RULES.name
    for alert in alerts:
        file.write_text(re.sub(rf"- alert: {alert}\b", f"- alert: {alert}Not", RULES.read_text()))
        assert promtool("test", "rules", CASES.name, cwd=rules).returncode != 0, alert


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


@contextlib.contextmanager
def started(log: pathlib.Path, *words: str) -> typing.Iterator[str]:
    """A program that serves metrics. Yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with log.open("w") as output:
        program = subprocess.Popen([*words, f"--web.listen-address={address}"], stdout=output, stderr=output)
    try:
        until(lambda: bool(answer(f"http://{address}/metrics")), log.read_text)
        yield f"http://{address}"
    finally:
        program.kill()
        program.wait()


def test_node_exporter_takes_the_files_of_two_jobs(servers: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "textfiles"
    for job in ("report", "clean-up"):
        folder.mkdir(exist_ok=True)
        words = ["run", "--mutex", f"/locks/{job}", "--metrics-file", str(folder / f"{job}.prom"), "--", "true"]
        done = subprocess.run([ZKLOCK, "--hosts", servers, *words], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
    only = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={folder}"]
    with started(tmp_path / "log", "prometheus-node-exporter", *only) as exporter:
        page = answer(f"{exporter}/metrics")
    assert "\nnode_textfile_scrape_error 0\n" in page
    for job in ("report", "clean-up"):
        assert f'\nzklock_lock_hold_seconds_count{{client="{job}",lock="{job}"}} 1\n' in page
        # The alert about a run that was killed finds the lock in the name of the file.
        assert f'\nnode_textfile_mtime_seconds{{file="{folder}/{job}.prom"}} ' in page


@contextlib.contextmanager
def prometheus(folder: pathlib.Path, client: zklock.Client) -> typing.Iterator[typing.Callable[[str], typing.Any]]:
    """Prometheus, which scrapes a client once a second. Yields what tells the series that answer a question."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(zklock.prometheus.Collector(client))
    server, serving = start_http_server(0, addr="127.0.0.1", registry=registry)
    scrapes = [{"job_name": "program", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}]
    file = folder / "prometheus.yml"
    file.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes}))
    words = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    try:
        with started(folder / "prometheus.log", *words) as address:
            url = f"{address}/api/v1/query?query="
            none = '{"data": {"result": []}}'
            yield lambda question: json.loads(answer(url + urllib.parse.quote(question)) or none)["data"]["result"]
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def test_prometheus_answers_every_question_of_the_board(servers: str, tmp_path: pathlib.Path) -> None:
    # The choices and times that Grafana would fill in.
    filled = {"$instance": ".*", "$lock": ".*", "$__rate_interval": "10s", "$__range": "1m"}
    with zklock.Client(servers, session_timeout=4) as zk, prometheus(tmp_path, zk) as ask:
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
