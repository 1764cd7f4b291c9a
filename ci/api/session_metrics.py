"""What does Prometheus learn of the database's sessions? How old the oldest open transaction of each part is."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ci.lifecycle.database_sessions import longest_by_part


class SessionCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        """Six series, whoever is connected."""
        what = "Age of the oldest open transaction, by the part of Forge CI whose it is; 0 for none."
        family = GaugeMetricFamily("forge_longest_transaction_seconds", what, labels=["part"])
        for part, seconds in longest_by_part().items():
            family.add_metric([part], seconds)
        yield family
