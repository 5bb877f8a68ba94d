"""What can be set about the drift monitor."""

from datetime import timedelta
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from winnow.assurance.terms import Budgets
from winnow.contracts.vocabulary import LabelFree, Missing, Mode
from winnow.messaging.webhook import checked_url
from winnow.storage.alarms import Acting
from winnow.storage.policy import Policy, Recertify
from winnow.storage.thresholds import Limits

#: Characters of the shortest key of a signature: 128 bits in hexadecimal.
SECRET_CHARS = 32


class DriftMonitorSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    default_mode: Mode = Field(default=Mode.ENFORCE, description="Most that a fleet seen for the first time may do.")
    default_tau: float = Field(default=0.5, ge=0, le=1, description="Threshold of a fleet seen for the first time.")
    default_judge: str = Field(default="local", min_length=1, description="Judge of a fleet seen for the first time.")
    heartbeat_interval_s: float = Field(default=5.0, gt=0, description="Seconds between heartbeats, well below the pruner's stale limit.")

    watermark_s: float = Field(
        default=600.0, ge=0, description="Seconds that a sampled unit waits for its grade before those behind it are folded."
    )
    missing_grades: Missing = Field(
        default=Missing.FOLD,
        description="`fold`: a unit without a grade counts as a loss of 1; `skip`: it is left out. It is counted either way.",
    )
    stream_alpha: float = Field(default=0.05, ge=1e-4, lt=1, description="Risk budget of a stream that was registered without one.")
    missing_alpha: float = Field(default=0.1, ge=1e-4, lt=1, description="Budget of the share of grades that do not come in time.")
    recovery_alpha: float = Field(default=0.05, ge=1e-4, lt=1, description="Budget of `recovery`: the agent asked back what was pruned.")
    unjudged_alpha: float = Field(default=0.05, ge=1e-4, lt=1, description="Budget of `unjudged`.")
    fallback_alpha: float = Field(default=0.05, ge=1e-4, lt=1, description="Budget of `fallback`.")
    canary_kept_alpha: float = Field(default=0.3, ge=1e-4, lt=1, description="Budget of `canary-kept`: unsupported entries that were kept.")
    canary_dropped_alpha: float = Field(default=0.1, ge=1e-4, lt=1, description="Budget of `canary-dropped`: supported entries that went.")
    family_delta: float = Field(
        default=0.03,
        ge=1e-6,
        lt=1,
        description="Error budget of a fleet's risk streams together, and again of its label-free ones, for life.",
    )
    fleet_delta: float = Field(default=0.02, ge=1e-6, lt=1, description="Error budget of the alarm of a fleet as a whole, for life.")

    hold_on_label_free: bool = Field(default=True, description="Hold a fleet on an alarm of a stream that nobody grades.")
    hold_on_thresholds: bool = Field(default=False, description="Hold a fleet on a plain threshold, which has no guarantee.")
    release_by_recertification: bool = Field(
        default=False, description="End a hold where fresh units show that the risk is within its budget again; else only people do."
    )
    release_margin: float = Field(
        default=0.8, gt=0, le=1, description="Share of the budget below which the fresh risk must be shown to be."
    )
    release_delta: float = Field(default=0.05, gt=0, lt=1, description="Error budget of showing it.")
    release_after_s: float = Field(default=3600.0, ge=0, description="Seconds that a hold lasts at least before it may end by itself.")

    run_idle_s: float = Field(default=3600.0, gt=0, description="Seconds without a sign of a run after which it counts as over.")
    run_settle_s: float = Field(default=60.0, ge=0, description="Seconds after `run_ended` in which what is under way still arrives.")

    not_judged_in_row: int = Field(
        default=20, ge=0, description="Boundaries in a row without the fleet's judge that are told of; 0: never."
    )
    loop_boundaries: int = Field(default=30, ge=0, description="Boundaries of one run within ten minutes that are told of; 0: never.")
    rate_factor: float = Field(default=10.0, ge=0, description="Times the usual number of boundaries that is told of; 0: never.")
    rate_least: int = Field(default=100, ge=1, description="Boundaries within ten minutes below which no rate is told of.")
    silence_s: float = Field(default=21600.0, ge=0, description="Seconds without a boundary that are told of in an active fleet; 0: never.")

    webhook_url: str | None = Field(
        default=None, description="Where alerts are sent by POST; https, or http to this machine. Unset: nowhere."
    )
    webhook_secret: SecretStr | None = Field(default=None, description="Key of the signature (HMAC-SHA256); needed with a URL.")
    webhook_timeout_s: float = Field(default=10.0, gt=0, le=60, description="Seconds that the other side may take.")
    webhook_attempts: int = Field(default=12, ge=1, le=50, description="Attempts before a delivery is given up, about half a day of them.")

    fold_interval_s: float = Field(default=1.0, gt=0, description="Seconds between looks at timers, families and deliveries.")
    look_interval_s: float = Field(default=30.0, gt=0, description="Seconds between looks at plain thresholds.")

    @field_validator("webhook_url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        """A URL that may be sent to."""
        return None if not value else checked_url(value)

    @model_validator(mode="after")
    def _signed(self) -> Self:
        """Nothing is sent unsigned."""
        if self.webhook_url is not None and (self.webhook_secret is None or len(self.webhook_secret.get_secret_value()) < SECRET_CHARS):
            msg = f"WINNOW_WEBHOOK_URL needs WINNOW_WEBHOOK_SECRET, at least {SECRET_CHARS} characters"
            raise ValueError(msg)
        return self

    @property
    def policy(self) -> Policy:
        """How streams are folded."""
        alphas = {
            LabelFree.RECOVERY: self.recovery_alpha,
            LabelFree.UNJUDGED: self.unjudged_alpha,
            LabelFree.FALLBACK: self.fallback_alpha,
            LabelFree.CANARY_KEPT: self.canary_kept_alpha,
            LabelFree.CANARY_DROPPED: self.canary_dropped_alpha,
        }
        return Policy(
            budgets=Budgets(
                risk_alpha=self.stream_alpha,
                label_free_alpha=alphas,
                missing_alpha=self.missing_alpha,
                delta=self.family_delta,
                missing=self.missing_grades,
                watermark_s=self.watermark_s,
            ),
            acting=self.acting,
            recertify=Recertify(margin=self.release_margin, delta=self.release_delta) if self.release_by_recertification else None,
        )

    @property
    def acting(self) -> Acting:
        """What the monitor does by itself."""
        return Acting(
            webhook=self.webhook_url is not None,
            hold_on_label_free=self.hold_on_label_free,
            hold_on_thresholds=self.hold_on_thresholds,
        )

    @property
    def limits(self) -> Limits:
        """When plain thresholds tell."""
        return Limits(
            not_judged_in_row=self.not_judged_in_row,
            loop_boundaries=self.loop_boundaries,
            rate_factor=self.rate_factor,
            rate_least=self.rate_least,
            silence=timedelta(seconds=self.silence_s),
        )
