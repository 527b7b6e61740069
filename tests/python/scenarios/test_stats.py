"""A client's figures, and their report to Prometheus."""

from __future__ import annotations

import math
import typing

from ground import Ground
from prometheus_client.parser import text_string_to_metric_families
from scenes import SOON, eventually, lose

import zklock


def samples(page: str) -> dict[tuple[str, str], float]:
    """The values by name and by their only label, as Prometheus would parse them."""
    read: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(page):
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            read[sample.name, "".join(sample.labels.values())] = sample.value
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


def test_a_client_that_has_not_connected_has_counted_nothing(hosts: str) -> None:
    client = zklock.Client(hosts)
    assert set(samples(client.prometheus()).values()) == {0.0}
    numbers: typing.Iterable[int] = client.stats().acquires.values()
    assert not any(numbers)
