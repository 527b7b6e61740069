"""docs/monitoring.md: its programs, its alerts, and its board."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing
import urllib.request

import pytest
from host import until
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from page import ADDRESS, ROOT, blocks, changed
from scraped import BOARD, Prometheus, free_port, program, questions

import zklock

PAGE = "docs/monitoring.md"
RULES = ROOT / "docs/monitoring/zklock.rules.yml"
ZKLOCK = os.environ.get("ZKLOCK_COMMAND") or str(ROOT / "target/debug/zklock")
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


# What docs/monitoring.md says of the log.
LOGS = """
import logging

from opentelemetry._logs import get_logger_provider
from opentelemetry.instrumentation.logging.handler import LoggingHandler

import zklock

log = logging.getLogger("zklock")
log.setLevel(logging.INFO)
log.addHandler(LoggingHandler(logger_provider=get_logger_provider()))
with zklock.Client("127.0.0.1:2181") as zk, zk.mutex("/locks/report"):
    pass
"""
IN_MEMORY = """
from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()
provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
_logs.set_logger_provider(provider)
"""
# Another thread passes the messages on.
EXPORTED = """
import time

end, text = time.monotonic() + 60, ""
while "session opened" not in text and time.monotonic() < end:
    time.sleep(0.01)
    text = "".join(f"{one.instrumentation_scope.name} {one.log_record.severity_text} {one.log_record.body}\\n" for one in exporter.get_finished_logs())
print(text)
"""


def test_opentelemetry_gets_the_log(servers: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("opentelemetry.instrumentation.logging.handler")
    file = tmp_path / "logs.py"
    file.write_text(IN_MEMORY + changed(LOGS, ADDRESS, servers) + EXPORTED)
    done = subprocess.run([sys.executable, "-W", "error", file], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^zklock INFO session opened session=0x", done.stdout, re.MULTILINE), done.stdout


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


@pytest.fixture
def textfiles(tmp_path: pathlib.Path) -> typing.Iterator[tuple[pathlib.Path, typing.Callable[[], str]]]:
    """A folder, and what node_exporter reads in it."""
    folder, log = tmp_path / "textfiles", tmp_path / "log"
    folder.mkdir()
    port = free_port()
    only = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={folder}"]
    with log.open("w") as output:
        exporter = subprocess.Popen(
            ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", *only], stdout=output, stderr=output
        )

    def read() -> str:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
            return typing.cast(bytes, page.read()).decode()
        return ""

    try:
        until(lambda: bool(read()), log.read_text)
        yield folder, read
    finally:
        exporter.kill()
        exporter.wait()


def test_node_exporter_takes_the_files_of_two_jobs(
    servers: str, textfiles: tuple[pathlib.Path, typing.Callable[[], str]]
) -> None:
    folder, read = textfiles
    for job in ("report", "clean-up"):
        words = ["run", "--mutex", f"/locks/{job}", "--metrics-file", str(folder / f"{job}.prom"), "--", "true"]
        done = subprocess.run([ZKLOCK, "--hosts", servers, *words], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
    page = read()
    assert "\nnode_textfile_scrape_error 0\n" in page
    for job in ("report", "clean-up"):
        assert f'\nzklock_lock_hold_seconds_count{{client="{job}",lock="{job}"}} 1\n' in page
        # The alert about a run that was killed finds the lock in the name of the file.
        assert f'\nnode_textfile_mtime_seconds{{file="{folder}/{job}.prom"}} ' in page


def test_prometheus_answers_every_question_of_the_board(servers: str, tmp_path: pathlib.Path) -> None:
    with program(servers) as (zk, port), Prometheus(tmp_path, port) as prometheus:
        until(lambda: zk.stats().locks["report"].acquires["timed_out"] > 0, zk.prometheus)
        for title, asked in questions().items():
            for question in asked:
                until(lambda question=question: bool(prometheus.ask(question)), lambda title=title: title)
        locks = {series["metric"]["lock"] for series in prometheus.ask(questions()["Held now"][0])}
        assert locks == {"report", "import", "mail"}
