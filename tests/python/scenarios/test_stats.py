"""A client's figures, and their report to Prometheus."""

from __future__ import annotations

import math
import typing

import pytest
from ground import Ground
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from scenes import SOON, eventually, lose

import zklock
import zklock.prometheus


def samples(page: str) -> dict[tuple[str, str], float]:
    """The values by name and by their labels, as Prometheus would parse them."""
    read: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(page):
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            read[sample.name, "".join(value for _, value in sorted(sample.labels.items()))] = sample.value
    return read


def test_prometheus_can_read_it(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock = zk.mutex(path, linger=60)
    for _ in range(3):
        with lock:
            pass
    lose(ground, zk.mutex(path + "-lost").hold(timeout=SOON))
    eventually(lambda: zk.stats().losses == 1)
    page, stats = zk.prometheus(), zk.stats()
    read = samples(page)
    assert set(stats.losses_by) == {reason.name.lower() for reason in zklock.LossReason}
    assert sum(stats.losses_by.values()) == stats.losses_by["node_deleted"] == stats.losses == 1
    assert read["zklock_sessions_total", ""] == 1
    assert read["zklock_grants_total", ""] == stats.grants == 4
    assert read["zklock_losses_total", "node_deleted"] == 1
    for outcome, count in stats.acquires.items():
        assert read["zklock_acquires_total", outcome] == count
    for name, histogram in (("acquire_wait_seconds", stats.acquire_wait), ("queue_length", stats.queue_length)):
        assert read[f"zklock_{name}_count", ""] == read[f"zklock_{name}_bucket", "+Inf"] == histogram.counted > 0
        assert math.isclose(read[f"zklock_{name}_sum", ""], histogram.sum)
        for bound, count in histogram.buckets[:-1]:
            bounds = {float(le): value for (of, le), value in read.items() if of == f"zklock_{name}_bucket"}
            assert bounds[bound] == count


def test_a_collector_has_the_figures_of_one_client(zk: zklock.Client, path: str) -> None:
    registry = CollectorRegistry(auto_describe=True)
    registry.register(zklock.prometheus.Collector(zk))
    with zk.mutex(path, metrics_name="report"):
        held = registry.get_sample_value("zklock_lock_held", {"lock": "report"})
    assert held == 1 and registry.get_sample_value("zklock_lock_held", {"lock": "report"}) == 0
    # Written and read once more, it is what the client itself writes, but for the order of labels.
    again = generate_latest(registry).decode()
    assert samples(again) == samples(zk.prometheus())
    with pytest.raises(ValueError, match="zklock"):
        registry.register(zklock.prometheus.Collector(zk))


def test_a_collector_tells_several_clients_apart(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    registry = CollectorRegistry(auto_describe=True)
    clients: dict[str, zklock.Client | zklock.AsyncClient] = {"orders": zk, "billing": other.aio}
    registry.register(zklock.prometheus.Collector(clients))
    with zk.mutex(path):
        pass
    value = registry.get_sample_value
    assert value("zklock_grants_total", {"client": "orders"}) == 1
    assert value("zklock_grants_total", {"client": "billing"}) == 0
    page = zklock.prometheus_text(clients)
    assert page.count("# TYPE zklock_grants_total ") == 1
    untyped: typing.Any = zklock.prometheus_text
    for wrong in ({"orders": 7}, {7: zk}, [zk], None):
        with pytest.raises(TypeError):
            untyped(wrong)
