"""Judges from settings: what services and commands build them with."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from winnow.judging.adapters.breaker import Breaker, BreakerPolicy
from winnow.judging.adapters.endpoint import Endpoint, Surroundings
from winnow.judging.adapters.ensemble import EnsembleJudge
from winnow.judging.adapters.jev import JevWire
from winnow.judging.adapters.masking import Masker
from winnow.judging.adapters.messages_api import MessagesWire
from winnow.judging.adapters.plan import Budget, Planner
from winnow.judging.adapters.remote import Price, RemoteJudge, RemotePolicy
from winnow.judging.adapters.retrying import Retry
from winnow.judging.adapters.specs import AnthropicSpec, EnsembleSpec, JevSpec, JudgesSettings, RemoteSpec, SelfSpec
from winnow.judging.adapters.tokens import cautious, o200k
from winnow.judging.adapters.transport import HttpTransport, Transport
from winnow.judging.adapters.wire import Wire
from winnow.judging.formula import FormulaJudge
from winnow.judging.local import LocalJudge
from winnow.judging.port import Judge

#: Known prices in US dollars for a million tokens, by asked model: the vendor's of 2026-09-15; output is not billed. Settings override.
KNOWN_PRICES: Mapping[str, Price] = {
    "jev-1.13.0": Price(input_usd=0.042),
    "typesafe/jev-1.13": Price(input_usd=0.042),
    "typesafe/jev-1.13-20260917": Price(input_usd=0.042),
}


#: Names of providers in traces, by the end of the endpoint's host.
PROVIDERS = (("typesafe.ai", "typesafe"), ("openrouter.ai", "openrouter"), ("anthropic.com", "anthropic"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """Judges by name; `local` and `formula`, which need no network, are always there. Close them when done."""

    by_name: Mapping[str, Judge]
    remote: tuple[RemoteJudge, ...]

    async def close(self) -> None:
        """Let go of connections; may be called twice."""
        for judge in self.remote:
            await judge.close()


def process() -> Surroundings:
    """The clocks and the chance of this process."""
    return Surroundings(
        monotonic=time.monotonic,
        now=lambda: datetime.now(UTC),
        jitter=random.Random().random,  # noqa: S311  spreads retries, guards nothing
    )


def build(settings: JudgesSettings, around: Surroundings | None = None, transport: Callable[[], Transport] = HttpTransport) -> Judges:
    """Every judge of `settings`, and those that need no network. Opens nothing: the rest comes with a boundary.

    Args:
        settings: validated; what cannot work was refused there.
        around: clocks and chance; left out, the process's own.
        transport: makes the transport of one judge.
    """
    around = around or process()
    remote: dict[str, RemoteJudge] = {}
    for name, spec in settings.judges.items():
        if not isinstance(spec, EnsembleSpec):
            remote[name] = _remote(name, spec, around, transport())
    plain: dict[str, Judge] = {"local": LocalJudge(), "formula": FormulaJudge(), **remote}
    ensembles: dict[str, Judge] = {
        name: EnsembleJudge(name, [plain[m] for m in spec.members], combine=spec.combine, fallbacks=[plain[f] for f in spec.fallbacks])
        for name, spec in settings.judges.items()
        if isinstance(spec, EnsembleSpec)
    }
    return Judges(by_name=plain | ensembles, remote=tuple(remote.values()))


def _count(text: str) -> int:
    """Tokens of `text` at most. The tokenizer is loaded when the first boundary comes."""
    return cautious(o200k())(text)


def _remote(name: str, spec: RemoteSpec, around: Surroundings, transport: Transport) -> RemoteJudge:
    """One remote judge."""
    breaker = Breaker(
        BreakerPolicy(failures=spec.breaker_failures, pause_s=spec.breaker_pause_s, refused_pause_s=spec.breaker_refused_pause_s),
        around.monotonic,
    )
    retry = Retry(further=spec.further_attempts)
    return RemoteJudge(
        name,
        wire=_wire(spec),
        endpoint=Endpoint(spec.url, transport, breaker, retry, around, attempt_s=spec.attempt_s),
        transport=transport,
        planner=Planner(Budget(total=spec.context_tokens, state=spec.state_tokens), _count),
        masker=Masker,
        policy=RemotePolicy(
            timeout_s=spec.timeout_s,
            fan_out=spec.fan_out,
            most_requests=spec.max_requests,
            votes=spec.votes if isinstance(spec, AnthropicSpec) else 1,
            models=spec.asked_models,
            expect_model=spec.expect_model,
            prices=_prices(spec),
        ),
        context_tokens=spec.context_tokens,
        now=around.now,
        provider=provider_of(spec),
        server=urlsplit(spec.url).hostname,
    )


def provider_of(spec: RemoteSpec) -> str:
    """Who is asked, by the host of the endpoint; a gateway of one's own goes by the protocol that it speaks."""
    host = urlsplit(spec.url).hostname or ""
    spoken = "typesafe" if isinstance(spec, JevSpec) else "anthropic"
    return next((name for suffix, name in PROVIDERS if host == suffix or host.endswith(f".{suffix}")), spoken)


def _wire(spec: RemoteSpec) -> Wire:
    """The protocol of a kind."""
    headers = {name.lower(): value.get_secret_value() for name, value in spec.headers.items()}
    if isinstance(spec, JevSpec):
        return JevWire(spec.api_key, state_as_text=spec.state_as_text, extra_headers=headers)
    return MessagesWire(spec.api_key, binary=isinstance(spec, SelfSpec), extra_headers=headers)


def _prices(spec: RemoteSpec) -> Mapping[str, Price]:
    """What was set, for every model of the judge; else what is known."""
    if spec.price_input is not None:
        price = Price(input_usd=spec.price_input, output_usd=spec.price_output or 0.0)
        return dict.fromkeys(spec.asked_models, price)
    return {model: KNOWN_PRICES[model] for model in spec.asked_models if model in KNOWN_PRICES}
