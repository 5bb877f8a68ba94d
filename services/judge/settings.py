"""What can be set about the judge."""

from typing import Self

from pydantic import Field, model_validator

from winnow.judging.adapters.specs import JudgesSettings


class JudgeSettings(JudgesSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    fallback_judge: str = Field(default="local", description="Judge that answers where the named one is not there or gives no answer.")

    @model_validator(mode="after")
    def _there(self) -> Self:
        """The fallback is one of the judges."""
        if self.fallback_judge not in self.names:
            msg = f"fallback_judge: there is no judge {self.fallback_judge[:100]!r}; there are {', '.join(sorted(self.names))}"
            raise ValueError(msg)
        return self
