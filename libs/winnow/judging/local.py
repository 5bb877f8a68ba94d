"""The local judge: the trained source model on the entries' features. No network, no memory, no chance."""

from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Evidence, JudgeId, Score
from winnow.judging.model import SourceModel, shipped
from winnow.judging.port import Capabilities, JudgeAnswer, JudgeRequest
from winnow.judging.scoring import answered, scored


def score(evidence: Evidence, model: SourceModel | None = None) -> tuple[Score, ...]:
    """Score every entry of a boundary from its features; pure. One entry's text changes no other entry's score."""
    fitted = model or shipped()
    return scored(evidence, fitted.probability, fitted.features_version)


class LocalJudge:
    """The default judge and every other judge's fallback."""

    def __init__(self, model: SourceModel | None = None) -> None:
        """Judge with `model`, or with the one that ships with the package."""
        self._model = model or shipped()
        self._id = JudgeId(name="local", version=self._model.version)

    @property
    def id(self) -> JudgeId:
        """`local`, with the versions of model, features and training data."""
        return self._id

    @property
    def model(self) -> SourceModel:
        """The model that it judges with."""
        return self._model

    @property
    def capabilities(self) -> Capabilities:
        """Local and deterministic; findings of the evidence cap its scores."""
        return Capabilities(remote=False, deterministic=True, refutes=True, reads_texts=False)

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:  # noqa: ARG002  it never waits, so it is never late
        """Judge a boundary; see the port for the contract."""
        return answered(self._id, score(request.evidence, self._model))
