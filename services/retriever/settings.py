"""What can be set about the retriever."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from winnow.contracts.vocabulary import Mode


class RetrieverSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    default_mode: Mode = Field(
        default=Mode.ENFORCE, description="Most that a fleet seen for the first time may do; a boundary may ask for less."
    )
    default_tau: float = Field(default=0.5, ge=0, le=1, description="Threshold of a fleet seen for the first time: keep iff score >= tau.")
    default_judge: str = Field(default="local", min_length=1, description="Judge of a fleet seen for the first time.")
    canary_share: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="Share of boundaries whose judge is also asked about at most two entries with known answers (docs/judges.md).",
    )
    sweep_interval_s: float = Field(default=15.0, gt=0, description="Seconds between looks for boundaries that are stuck in a stage.")
    stuck_after_s: float = Field(default=60.0, gt=0, description="Seconds in one stage after which a boundary is published again.")
