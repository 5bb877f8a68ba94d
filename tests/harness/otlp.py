"""A collector on loopback: takes OTLP over HTTP and keeps what it got, decoded."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


def attributes(of: Any) -> dict[str, Any]:
    """Attributes of a span, log record, data point or resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


@dataclass
class OtlpReceiver:
    """`with OtlpReceiver() as receiver:`; answers each request with `status`."""

    status: int = 200
    requests: list[tuple[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                receiver.raw.append(body)
                receiver.requests.append((self.path, MESSAGES[self.path].FromString(body)))
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """What WINNOW_OTLP_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def spans(self) -> list[tuple[str, Any]]:
        """Service and span."""
        return [
            (attributes(group.resource)["service.name"], span)
            for path, message in list(self.requests)
            if path == "/v1/traces"
            for group in message.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        """Metrics of the last export by name."""
        return {
            metric.name: metric
            for path, message in list(self.requests)
            if path == "/v1/metrics"
            for group in message.resource_metrics
            for scope in group.scope_metrics
            for metric in scope.metrics
        }

    @property
    def logs(self) -> list[Any]:
        """Log records."""
        return [
            record
            for path, message in list(self.requests)
            if path == "/v1/logs"
            for group in message.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]
