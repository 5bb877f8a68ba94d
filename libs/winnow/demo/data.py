"""The run that ships with the package; `NOTICE.md` beside it names its origin and licence."""

from importlib import resources

from pydantic import Field

from winnow.contracts.events import Message, Model


class Origin(Model):
    """Where the trajectory comes from."""

    repo: str
    path: str
    commit: str
    licence: str


class DemoBoundary(Model):
    """One boundary: what the agent did since the last one, and the summary that the compressor wrote."""

    index: int = Field(ge=1)
    history: tuple[Message, ...]
    retained: tuple[Message, ...]
    candidate: str


class DemoRun(Model):
    """Consecutive boundaries of one agent's run."""

    run: str
    origin: Origin
    task: str
    boundaries: tuple[DemoBoundary, ...]


def load() -> DemoRun:
    """Read the run from the package."""
    return DemoRun.model_validate_json(resources.files("winnow.demo").joinpath("run.json").read_bytes())
