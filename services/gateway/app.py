"""The gateway, wired: the only place where its objects meet.

start: pool -> watch and relay -> web server.   stop: who waits is answered -> web server (running requests end) -> relay -> pool.
"""

from collections.abc import Coroutine, Sequence
from datetime import timedelta

from services.gateway.api import make_api
from services.gateway.bodies import BodyReader
from services.gateway.console.console import Console
from services.gateway.console.settings import ConsoleSettings
from services.gateway.handlers import Gateway
from services.gateway.keys import Keys
from services.gateway.operating import Operating
from services.gateway.parts import Parts
from services.gateway.quotas import Quotas
from services.gateway.relay import Relay
from services.gateway.server import WebServer, tls_context
from services.gateway.settings import GatewaySettings
from services.gateway.shell import Shell
from services.gateway.tasks import Tasks
from services.gateway.watch import CommitWatch
from winnow.client.isolation import isolated
from winnow.contracts import limits
from winnow.messaging.health import Check
from winnow.messaging.settings import KafkaSettings
from winnow.storage.database import Database
from winnow.storage.service import utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

#: Seconds that tasks, relay and pool may each take to end, once no request runs any more.
STOP_S = 3.0


class GatewayService:
    """`messaging.runtime.Service` of the gateway."""

    name = "gateway"

    def __init__(
        self,
        telemetry: Telemetry,
        kafka: KafkaSettings,
        database: DatabaseSettings,
        settings: GatewaySettings,
        console: ConsoleSettings,
    ) -> None:
        """Nothing is opened before `start`."""
        self._telemetry = telemetry
        self._database = Database(
            database.database_url.get_secret_value(), pool_size=settings.gateway_pool_size, application_name="winnow-gateway"
        )
        self._watch = CommitWatch(self._database)
        self._leaving = False
        self._relay = Relay(self._database, kafka, telemetry)
        self._tasks = Tasks(telemetry)
        parts = Parts(
            settings=settings,
            gateway=Gateway(self._database, self._watch, now=utc_now, upload_ttl=timedelta(hours=settings.gateway_upload_ttl_h)),
            operating=Operating(self._database, topic_prefix=kafka.topic_prefix, now=utc_now),
            keys=Keys(self._database, cache_s=settings.gateway_key_cache_s, now=utc_now),
            quotas=Quotas(
                rate_per_s=settings.gateway_rate_per_s,
                burst=settings.gateway_rate_burst,
                failures_per_minute=settings.gateway_auth_failures_per_minute,
            ),
            bodies=BodyReader(budget_bytes=settings.gateway_body_budget_mib * limits.MIB, timeout_s=settings.gateway_body_timeout_s),
            watch=self._watch,
            telemetry=telemetry,
            backlog=lambda: self._relay.backlog,
            checks=self.checks,
        )
        self._pages = Database(
            database.database_url.get_secret_value(), pool_size=console.console_pool_size, application_name="winnow-console"
        )
        self._console = (
            Console.over(self._pages, parts.keys, console, topic_prefix=kafka.topic_prefix, now=utc_now) if console.console else None
        )
        password = settings.gateway_tls_key_password
        self._server = WebServer(
            Shell(make_api(parts, self._console), telemetry, most_requests=settings.gateway_max_requests),
            host=settings.gateway_host,
            port=settings.gateway_port,
            keepalive_s=settings.gateway_keepalive_s,
            drain_s=settings.gateway_drain_s,
            tls=tls_context(settings.gateway_tls_certfile, settings.gateway_tls_keyfile, password.get_secret_value() if password else ""),
        )

    @property
    def url(self) -> str:
        """Where it listens, once started."""
        return self._server.url

    async def start(self) -> None:
        """Listen. A database or broker that is away does not stand in the way: requests are answered 503, the outbox waits."""
        self._tasks.start("commit-listen", self._watch.listen)
        self._tasks.start("commit-look", self._watch.look)
        self._tasks.start("outbox-relay", self._relay.run)
        self._tasks.start("lag", self._relay.watch_lag)
        self._tasks.start("outbox-depth", self._relay.watch_depth)
        if self._console is not None:
            self._tasks.start("console-feed", self._console.feed.run)
        await self._server.start()
        self._telemetry.log.info("service_ready", part="gateway", url=self._server.url)

    def drain(self) -> None:
        """Be unready from now on; requests are taken until `stop`, for a load balancer needs a moment to notice."""
        self._leaving = True

    async def stop(self) -> None:
        """Stop in the order of the module's docstring. May be called twice."""
        self._watch.drain()
        if self._console is not None:
            self._console.feed.drain()
        await self._server.stop()
        await self._end("tasks", self._tasks.stop())
        await self._end("relay", self._relay.stop())
        await self._end("console-database", self._pages.close())
        await self._end("database", self._database.close())

    async def _end(self, what: str, work: Coroutine[None, None, None]) -> None:
        """Let a part end, within its time: clients of a broker may hang at their end (aiokafka#659), and leaving them loses nothing."""
        try:
            await isolated(work, STOP_S)
        except Exception as error:  # noqa: BLE001  the parts behind this one must end too
            self._telemetry.log.warning("background_failed", exc=error, loop=what, error=error)

    def checks(self) -> Sequence[Check]:
        """The web server (vital), the database, and that the gateway is not stopping. Not Kafka: the outbox waits for it."""
        return [
            Check(name="http", ask=self._serves, vital=True),
            Check(name="database", ask=self._answers),
            Check(name="draining", ask=self._stays),
        ]

    async def _serves(self) -> str | None:
        return self._server.problem

    async def _answers(self) -> str | None:
        try:
            await self._database.ping()
        except Exception as error:  # noqa: BLE001  whatever is wrong is what the check is for
            return f"the database does not answer: {type(error).__name__}"
        return None

    async def _stays(self) -> str | None:
        return "the gateway stops" if self._leaving or self._watch.draining else None


def build(
    telemetry: Telemetry,
    kafka: KafkaSettings,
    database: DatabaseSettings,
    settings: GatewaySettings | None = None,
    console: ConsoleSettings | None = None,
) -> GatewayService:
    """The gateway, with the console, and with the outbox relay of the process it runs in."""
    return GatewayService(telemetry, kafka, database, settings or GatewaySettings(), console or ConsoleSettings())
