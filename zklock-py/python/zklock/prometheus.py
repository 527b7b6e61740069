"""The figures of clients for ``prometheus_client``, which ``pip install 'zklock-py[prometheus]'`` installs too.

>>> import prometheus_client
>>> import zklock.prometheus
>>> registry = prometheus_client.CollectorRegistry()
>>> registry.register(zklock.prometheus.Collector(zk))
>>> registry.get_sample_value("zklock_acquires_total", {"outcome": "timed_out"})
0
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector as _Collector

from ._zklock import AsyncClient, Client, prometheus_text

__all__ = ["Collector"]

Clients = typing.Union[Client, AsyncClient, Mapping[str, typing.Union[Client, AsyncClient]]]


class Collector(_Collector):
    """Collects the figures of one client, or of several: ``Collector({"orders": zk, "billing": other})`` gives each client its
    key as the label ``client``. Metrics and labels are those of ``Client.prometheus``.

    Register one collector for all clients of a process. A second one would have the same metrics, and ``register`` would raise
    ``ValueError``. Collecting sends no request, and works in any thread. A client that was closed keeps its figures.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def collect(self) -> Iterator[Metric]:
        """The metrics, with the values of this moment."""
        clients = self._clients
        text = prometheus_text(clients) if isinstance(clients, Mapping) else clients.prometheus()
        yield from text_string_to_metric_families(text)
