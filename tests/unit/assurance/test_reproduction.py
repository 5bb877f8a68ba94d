"""Published figures: each with the verdict that its numbers earn, from the counts that ship with the package."""

import hashlib
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.harness import shared_data
from winnow.assurance.reproduction import distil, figures, sjc, sources
from winnow.contracts.errors import NotFound
from winnow.contracts.evaluation import ReproductionVerdict, Status, read_record

NOW = datetime(2026, 11, 30, tzinfo=UTC)
REPRODUCED, OTHER, FALLS = ReproductionVerdict.REPRODUCED, ReproductionVerdict.OTHER_DEFINITION, ReproductionVerdict.DOES_NOT_HOLD


def reproduced(publication, *names, seed=0):
    return figures.record(publication, names, id=UUID(int=1), now=NOW, seed=seed)


@pytest.fixture(scope="module")
def claims():
    return {claim.name: claim for claim in reproduced(distil.publication()).claims}


def test_what_does_not_hold_as_worded(claims):
    """Exactly these fall: equality from a large p, marginal bounds worded as conditional, proof by fresh halves, pooled modes."""
    assert {name for name, claim in claims.items() if claim.verdict is FALLS} == {
        "E5.digest_beats_truncation", "E7.parity", "E8.non_inferior", "E10.proof", "E10.one_in_nine", "E11.selects_gate12",
        "E11.well_powered", "E14.of_solvable", "shadow.within_budget", "zero_loss_size",
    }  # fmt: skip


def test_what_needs_another_definition(claims):
    """The half splits of E2, the exact flags, the consequential turns and the stand-in of gate@6."""
    names = {name for name, claim in claims.items() if claim.verdict is OTHER}
    assert all(name.startswith("E2.alpha_") or name in {"E5.flags_exact", "E9.consequential_turns", "E11.gate6.rejected"} for name in names)
    assert sum(name.startswith("E2.") for name in names) == 10


@pytest.mark.parametrize(
    ("name", "value", "tolerance"),
    [
        ("E2.alpha_0.15.risk", 8.05, 0.01), ("E2.alpha_0.15.savings", 15.6, 0.01), ("E2.alpha_0.125.coverage", 97.06, 0.01),
        ("E3.divergence.control", 0.728, 5e-4), ("E3.harm.control", 0.764, 5e-4), ("E3.divergence.dispersion", 1.3721, 5e-5),
        ("E7.truncation.p", 1.2e-4, 5e-6), ("E8.gate.p", 0.1945, 5e-5), ("E8.duel.p", 0.035, 5e-4),
        ("E10.divergence.bound", 18.01, 5e-3), ("E10.harm.bound", 11.37, 5e-3), ("E10.ungated.bound", 23.18, 5e-3),
        ("E10.divergence.fresh_half", 95.14, 5e-3), ("E10.harm.fresh_half", 96.25, 5e-3), ("E10.ungated.fresh_half", 93.02, 5e-3),
        ("E11.gate12.p", 0.1496, 5e-5), ("E14.p", 0.0048, 5e-5), ("E14.bound", 8.85, 6e-3), ("E13.capital_206", 0.8969, 5e-5),
        ("served.harm_bound", 9.58, 5e-3), ("provider.paired", 0.175, 1e-6),
    ],
)  # fmt: skip
def test_values(claims, name, value, tolerance):
    """The figures that an implementation has to find."""
    assert claims[name].observed == pytest.approx(value, abs=tolerance)


def test_everything_that_is_promised_is_there():
    """E2, E3, E5, E7, E8, E10, E11 and E14 among them; each claim says where it was published and how it is defined."""
    publication = distil.publication()
    assert {"E2", "E3", "E5", "E7", "E8", "E10", "E11", "E14"} <= set(publication.experiments)
    for claim in reproduced(publication, "E7", "E14").claims:
        assert claim.source
        assert claim.definition
        assert claim.statement


def test_one_experiment_gives_what_it_gives_among_all(claims):
    """What is drawn at random depends on seed and experiment alone; names are read in any case."""
    alone = {claim.name: claim for claim in reproduced(distil.publication(), "e3", "E9").claims}
    assert alone == {name: claim for name, claim in claims.items() if name.startswith(("E3.", "E9."))}
    with pytest.raises(NotFound, match="E14"):
        reproduced(distil.publication(), "E99")


def test_sjc():
    """29 of 35 with its interval and 29 of 44; the gains on 95 tasks show nothing by themselves; 1.51 supported for one scored so."""
    record = reproduced(sjc.publication())
    found = {claim.name: claim for claim in record.claims}
    assert found["failures.analysed"].observed == pytest.approx(0.829, abs=5e-4)
    assert found["failures.analysed"].interval.lo == pytest.approx(0.6635, abs=5e-5)
    assert found["failures.all"].observed == pytest.approx(0.659, abs=5e-4)
    assert [round(found[f"pass3.{n}"].observed, 4) for n in ("15_of_168", "12_of_168", "5_of_95", "2_of_95")] == [
        0.0001,
        0.0005,
        0.0625,
        0.5,
    ]
    assert [found[f"pass3.{n}"].verdict for n in ("15_of_168", "12_of_168", "5_of_95", "2_of_95")] == [REPRODUCED, REPRODUCED, FALLS, FALLS]
    assert found["supported.ratio"].observed == pytest.approx(1.509, abs=5e-4)


def test_the_record_is_read_again_and_passes_nothing():
    """A reproduction has no gates; it names its data with hash and licence."""
    record = reproduced(distil.publication(), "E9")
    assert record.status is Status.NO_GATE
    assert read_record(record.to_json()) == record
    assert len(record.data) == 7
    assert all(data.licence and "Apache-2.0" in data.licence for data in record.data)


def test_the_shipped_counts_are_the_published_ones():
    """The files of the package are, byte for byte, those whose origin stands in NOTICE.md."""
    folder = shared_data("distil_outcomes")
    for name in sources.FILES:
        place = next(folder.rglob(name))
        assert sources.fingerprint(name).sha256 == hashlib.sha256(place.read_bytes()).hexdigest()
