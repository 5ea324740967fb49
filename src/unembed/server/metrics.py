"""What a server counts, in Prometheus' text format."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._registry = registry
        self.requests = Counter(
            "unembed_requests", "Requests by path and status.", ["path", "status"], registry=registry
        )
        self.waiting = Gauge("unembed_queue_waiting", "Vectors that wait.", registry=registry)
        self.running = Gauge("unembed_queue_running", "Vectors that are worked on.", registry=registry)
        self.decode_seconds = Histogram(
            "unembed_decode_seconds",
            "Computing time of a batch.",
            ["strategy"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "unembed_batch_size", "Vectors decoded together.", buckets=_SIZES, registry=registry
        )
        self.wait_seconds = Histogram(
            "unembed_wait_seconds", "Time from arrival to the first pass.", buckets=_SECONDS, registry=registry
        )

    def text(self) -> bytes:
        """Return everything in the text format."""
        return generate_latest(self._registry)
