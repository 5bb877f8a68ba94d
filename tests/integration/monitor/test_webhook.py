"""The webhook: signed, at least once, later and later, and given up in plain sight."""

import random
import uuid
from datetime import timedelta

import httpx
import pytest

from services.drift_monitor.loops import Deliverer
from services.drift_monitor.settings import DriftMonitorSettings
from winnow.contracts.events import Alert
from winnow.contracts.signing import signature
from winnow.contracts.vocabulary import AlertKind
from winnow.messaging.webhook import Webhook, checked_url, pause_s
from winnow.storage import alerts, webhooks
from winnow.telemetry import Telemetry

SECRET = "0123456789abcdef" * 2


class Server:
    """Answers as it is told, and keeps what came."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.status = 200
        self.away = False

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.away:
            raise httpx.ConnectError("refused")
        return httpx.Response(self.status, headers={"Location": "https://elsewhere.example/"})


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def deliverer(db, clock, server):
    hook = Webhook("https://ops.example/hook", SECRET, timeout_s=5, transport=httpx.MockTransport(server))
    telemetry = Telemetry.plain("drift_monitor")
    made = Deliverer(db, hook, clock=clock, telemetry=telemetry, rng=random.Random(1), timeout_s=5, attempts=3)
    yield made
    await made.close()


async def _raise(db, fleet, clock, *, webhook=True) -> Alert:
    alert = Alert(fleet=fleet, alert_id=uuid.uuid4(), kind=AlertKind.RAISED, at=clock(), because="b\x00\ud800"[:1], done="d")
    async with db.transaction() as tx:
        await alerts.publish(tx, [alert], webhook=webhook, now=clock())
    return alert


async def _row(db, alert):
    async with db.transaction() as tx:
        return (await webhooks.standing(tx, [alert.alert_id])).get(str(alert.alert_id))


async def test_a_delivery_is_signed(db, fleet, clock, server, deliverer):
    """What is sent is the alert, and the signature is that of the time and the exact body."""
    alert = await _raise(db, fleet, clock)
    await deliverer.step()
    request = next(r for r in server.requests if str(alert.alert_id) in r.content.decode())
    assert Alert.model_validate_json(request.content) == alert
    timestamp = int(request.headers["Winnow-Timestamp"])
    assert timestamp == int(clock().timestamp())
    assert request.headers["Winnow-Signature"] == signature(SECRET, timestamp, request.content)
    assert signature(SECRET, timestamp + 1, request.content) != request.headers["Winnow-Signature"]
    assert (await _row(db, alert)).word == "delivered"
    count = len(server.requests)
    clock.passes(days=1)
    await deliverer.step()
    assert len(server.requests) == count


async def test_failures_are_tried_again_and_given_up(db, fleet, clock, server, deliverer):
    """An error, a refusal and a redirect are failures; after the last attempt the row says so and stays."""
    server.away = True
    alert = await _raise(db, fleet, clock)
    await deliverer.step()
    first = await _row(db, alert)
    assert (first.word, first.attempts, first.last_error) == ("waiting", 1, "ConnectError")
    await deliverer.step()
    assert (await _row(db, alert)).attempts == 1
    server.away, server.status = False, 503
    clock.passes(seconds=6)
    await deliverer.step()
    assert ((await _row(db, alert)).last_status, (await _row(db, alert)).last_error) == (503, "answered 503")
    server.status = 302
    clock.passes(seconds=60)
    await deliverer.step()
    last = await _row(db, alert)
    assert (last.word, last.attempts, last.last_status) == ("given up", 3, 302)
    assert all(r.url.host == "ops.example" for r in server.requests)


async def test_who_dies_amid_a_delivery_leaves_it(db, fleet, clock, server, deliverer):
    """A delivery that was claimed and never finished is due again after its lease."""
    alert = await _raise(db, fleet, clock)
    async with db.transaction() as tx:
        assert await webhooks.claim(tx, limit=100, lease=timedelta(seconds=15), now=clock())
    await deliverer.step()
    assert (await _row(db, alert)).word == "waiting"
    clock.passes(seconds=16)
    await deliverer.step()
    assert (await _row(db, alert)).word == "delivered"


async def test_alerts_of_other_services(db, fleet, clock, server, deliverer):
    """An alert that was raised without a delivery gets one while it is fresh."""
    alert = await _raise(db, fleet, clock, webhook=False)
    await deliverer.step()
    await deliverer.step()
    assert (await _row(db, alert)).word == "delivered"


@pytest.mark.parametrize("url", ["ftp://x/", "http://ops.example/hook", "https://u:p@ops.example/", "https://", "hook"])
def test_where_alerts_do_not_go(url):
    """Nothing leaves this machine unencrypted, and no password stands in a URL."""
    with pytest.raises(ValueError, match="webhook"):
        checked_url(url)


def test_nothing_is_sent_unsigned():
    """A URL without a long enough secret is refused at the start."""
    with pytest.raises(ValueError, match="WINNOW_WEBHOOK_SECRET"):
        DriftMonitorSettings(webhook_url="https://ops.example/")
    with pytest.raises(ValueError, match="WINNOW_WEBHOOK_SECRET"):
        DriftMonitorSettings(webhook_url="https://ops.example/", webhook_secret="short")
    assert DriftMonitorSettings(webhook_url="http://127.0.0.1:1/", webhook_secret=SECRET).acting.webhook


def test_pauses_grow():
    """Pauses double up to an hour, and chance only shortens them."""
    pauses = [pause_s(n, 0.0) for n in range(1, 40)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (5.0, 3600.0)
    assert all(pause_s(n, 0.99) >= pause_s(n, 0.0) / 2 for n in range(1, 40))
