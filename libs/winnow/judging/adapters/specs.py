"""What can be set about judges: `WINNOW_JUDGES`, a JSON object of judges by name, and `WINNOW_JUDGES__<NAME>__<FIELD>` for one field."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from winnow.judging.adapters.ensemble import Combine
from winnow.judging.adapters.transport import BadEndpoint, checked

#: Names of judges that are always there.
RESERVED = ("local", "formula")
#: Seconds that any time-out may have: an hour is longer than any agent waits, and below what timers of any platform take.
_MOST_S = 3600.0

JudgeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
Seconds = Annotated[float, Field(gt=0, le=_MOST_S, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _sendable(value: SecretStr) -> SecretStr:
    """Refuse what no header can carry, without quoting it."""
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("holds characters that no key or header has; was it pasted with a line end?")
    return value


Key = Annotated[SecretStr, AfterValidator(_sendable)]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]


class _Spec(BaseModel):
    """Base of all kinds: frozen, and a field that does not exist is an error, not a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RemoteSpec(_Spec):
    """What all remote kinds have."""

    url: str = Field(description="The whole URL of the endpoint; https, and never derived from a base.")
    api_key: Key | None = Field(
        default=None, description="Key for it; unset: none is sent. Better in a variable of its own than in the JSON."
    )
    headers: dict[HeaderName, Key] = Field(default_factory=dict, description="Further headers, for gateways that want some.")
    timeout_s: Seconds = Field(
        default=20.0, description="Seconds for one boundary, retries and all; a boundary's own deadline may be sooner."
    )
    attempt_s: Seconds = Field(default=10.0, description="Seconds for one attempt, connecting and the whole body included.")
    further_attempts: int = Field(default=2, ge=0, le=5, description="Attempts after the first, for what may pass.")
    fan_out: int = Field(default=4, ge=1, le=16, description="Requests of one boundary at the same time, where it is split.")
    max_requests: int = Field(default=32, ge=1, le=1000, description="Requests of one boundary at most; what is beyond is kept unscored.")
    context_tokens: int = Field(ge=1000, description="Tokens of one request at most, state and questions.")
    state_tokens: int = Field(ge=500, description="Tokens of its state at most.")
    price_input: Dollars | None = Field(
        default=None, description="US dollars for a million input tokens; unset: a known price, else unknown (docs/judges.md)."
    )
    price_output: Dollars | None = Field(default=None, description="The same for output tokens.")
    expect_model: str | None = Field(default=None, description="What the answering model's name must begin with; another one is no answer.")
    allow_moving_model: bool = Field(default=False, description="Let a model be asked by an alias that moves (`...latest`).")
    allow_insecure_url: bool = Field(default=False, description="Let the URL be http: for tests and loopback; the key goes in clear text.")
    breaker_failures: int = Field(default=5, ge=1, description="Calls in a row that fail before the judge is left alone for a while.")
    breaker_pause_s: Seconds = Field(default=30.0, description="Seconds that it is left alone.")
    breaker_refused_pause_s: Seconds = Field(default=300.0, description="Seconds after its key or account was refused.")

    @property
    def asked_models(self) -> tuple[str, ...]:
        """Every model that a request may name."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """The URL may be sent a key, models are pinned, a request has room for more than its state."""
        try:
            checked(self.url, allow_insecure=self.allow_insecure_url)
        except BadEndpoint as error:
            raise ValueError(f"url: {error}") from None
        moving = [model for model in self.asked_models if model.rstrip("-").endswith("latest")]
        if moving and not self.allow_moving_model:
            raise ValueError(f"model: {moving[0][:100]!r} is an alias that moves, and a threshold belongs to a version; name the version")
        if self.state_tokens >= self.context_tokens:
            raise ValueError("state_tokens: must be below context_tokens, for the questions need room too")
        return self


class JevSpec(RemoteSpec):
    """The Jev decision API, at TypeSafe, OpenRouter or a gateway that speaks it."""

    kind: Literal["jev"] = Field(description="What it is.")
    url: str = Field(
        default="https://api.typesafe.ai/v1/systemone",
        description="The whole URL of the endpoint; https. OpenRouter Decisions: `https://openrouter.ai/api/alpha/decisions`.",
    )
    model: str = Field(default="jev-1.13.0", min_length=1, description="The pinned model; at OpenRouter `typesafe/jev-1.13`.")
    state_as_text: bool = Field(default=False, description="Send the state as one string: for models that take no object. Another judge.")
    context_tokens: int = Field(
        default=30_000, ge=1000, description="Tokens of one request at most, state and questions (the API takes 32K)."
    )
    state_tokens: int = Field(default=25_000, ge=500, description="Tokens of its state at most.")

    @property
    def asked_models(self) -> tuple[str, ...]:
        """The one model."""
        return (self.model,)


class AnthropicSpec(RemoteSpec):
    """Anthropic's Messages API with a forced tool call: one probability an entry."""

    kind: Literal["anthropic"] = Field(description="What it is.")
    url: str = Field(default="https://api.anthropic.com/v1/messages", description="The whole URL of the endpoint; https.")
    model: str = Field(min_length=1, description="The pinned model.")
    votes: int = Field(default=1, ge=1, le=9, description="Identical requests, combined by their median; odd. Each one costs.")
    context_tokens: int = Field(default=160_000, ge=1000, description="Tokens of one request at most.")
    state_tokens: int = Field(default=140_000, ge=500, description="Tokens of its state at most.")

    @property
    def asked_models(self) -> tuple[str, ...]:
        """The one model."""
        return (self.model,)

    @model_validator(mode="after")
    def _odd(self) -> Self:
        """Votes have a majority."""
        if self.votes % 2 == 0:
            raise ValueError("votes: must be odd, so that there is a majority")
        return self


class SelfSpec(RemoteSpec):
    """The compressor's own model, through the Messages API: yes or no an entry, a score of 1 or 0."""

    kind: Literal["self"] = Field(description="What it is.")
    url: str = Field(default="https://api.anthropic.com/v1/messages", description="The whole URL of the endpoint; https.")
    models: tuple[str, ...] = Field(
        min_length=1, description="Models that may be asked: the boundary's compressor where it is one of them, else the first."
    )
    context_tokens: int = Field(default=160_000, ge=1000, description="Tokens of one request at most.")
    state_tokens: int = Field(default=140_000, ge=500, description="Tokens of its state at most.")

    @property
    def asked_models(self) -> tuple[str, ...]:
        """All that may be asked."""
        return self.models


class EnsembleSpec(_Spec):
    """Several judges as one."""

    kind: Literal["ensemble"] = Field(description="What it is.")
    members: tuple[JudgeName, ...] = Field(min_length=1, description="Judges that are asked at the same time; `local` may be one.")
    combine: Combine = Field(default=Combine.MEAN, description="`any` (highest), `mean` or `majority` (median).")
    fallbacks: tuple[JudgeName, ...] = Field(default=("local",), description="Judges asked in this order where no member answers.")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        """Nobody votes twice."""
        if len(set(self.members)) < len(self.members):
            raise ValueError("members: each is named once")
        return self


JudgeSpec = Annotated[JevSpec | AnthropicSpec | SelfSpec | EnsembleSpec, Field(discriminator="kind")]


class JudgesSettings(BaseSettings):
    """The judges beside the local one. Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(
        env_prefix="WINNOW_", env_nested_delimiter="__", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    judges: dict[JudgeName, JudgeSpec] = Field(
        default_factory=dict,
        description="Judges by name, as JSON; single fields also as `WINNOW_JUDGES__<NAME>__<FIELD>`, for keys above all (docs/judges.md).",
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """Names are free, and ensembles name judges that are there and are no ensembles."""
        for name, spec in self.judges.items():
            if name in RESERVED:
                raise ValueError(f"judges: {name} is always there and cannot be set")
            if isinstance(spec, EnsembleSpec):
                for member in (*spec.members, *spec.fallbacks):
                    if member not in RESERVED and (member not in self.judges or isinstance(self.judges[member], EnsembleSpec)):
                        raise ValueError(f"judges: the ensemble {name} names {member}, which is no judge or an ensemble itself")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Every judge that there is."""
        return (*RESERVED, *self.judges)
