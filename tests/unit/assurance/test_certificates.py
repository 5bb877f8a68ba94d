"""Certificates: words that claim what was shown, an end, a revocation, and a registration that is kept."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.assurance import certificates
from winnow.assurance.certificates import Bound, Issue, Terms
from winnow.assurance.kinds import Loss, Unit
from winnow.assurance.samples import InvalidSample, Sample
from winnow.contracts.evaluation import (
    CertificateVerdict,
    Compressor,
    DataFingerprint,
    Grader,
    GraderKind,
    Status,
    Subject,
    read_record,
)

NOW = datetime(2026, 11, 30, tzinfo=UTC)
BOUND = Bound(
    compressor=Compressor(name="openclaw", version="2026.9"),
    judge=Subject(kind="judge", name="local", version="1"),
    grader=Grader(kind=GraderKind.RULE, name="tests"),
    data=DataFingerprint(source="runs.jsonl", sha256="0" * 64, n=500, unit="run"),
    tau=0.5,
)
ISSUE = Issue(id=UUID(int=1), now=NOW, life=timedelta(days=30), certificate_id=UUID(int=2))


def made(k=31, n=500, alpha=0.1, **terms):
    evidence = certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=alpha, **terms), Sample.counts(k, n), solved=Sample.counts(k, 196))
    return certificates.record(evidence, BOUND, issue=ISSUE)


def test_the_statement_names_both_denominators_and_each_bound():
    """The published example: 31 of 500, at most 8.28 %; of the 196 that the reference solves 15.8 %, at most 20.7 %."""
    words = made(n=500).certificate.statement
    for part in (
        "Over all 500 trajectories, 31 (6.2 %)",
        "confidence 95 %",
        "8.276 %",
        "196",
        "15.82 %",
        "20.74 %",
        "on its own",
        "exact binomial",
    ):
        assert part in words
    assert "would have solved" not in words


def test_a_certificate_binds_and_expires():
    """Everything that it rests on is in the record, which can be read again; it lives until it expires."""
    record = made()
    certificate = record.certificate
    assert certificate.verdict is CertificateVerdict.CERTIFIED
    assert (certificate.n, certificate.k, certificate.alpha, certificate.delta) == (500, 31, 0.1, 0.05)
    assert (certificate.method, certificate.unit, certificate.loss, certificate.loss_type) == ("exact", "trajectory", "harm_all", "binary")
    assert certificate.bound == pytest.approx(0.0827615)
    assert certificate.lower_bound < 0.062
    assert len(certificate.assumptions) == 5
    assert (record.compressor, record.grader, record.data) == (BOUND.compressor, BOUND.grader, (BOUND.data,))
    assert read_record(record.to_json()) == record
    assert record.status is Status.PASSED
    assert certificates.live(certificate, NOW)
    assert certificates.live(certificate, NOW + timedelta(days=29))
    assert not certificates.live(certificate, NOW + timedelta(days=30))
    assert not certificates.live(certificate, NOW - timedelta(seconds=1))


def test_an_alarm_revokes_and_the_first_cause_stands():
    """A revoked certificate is not live; a second revocation changes nothing; a record without a certificate cannot be revoked."""
    record = made()
    revoked = certificates.revoked(record, at=NOW + timedelta(days=1), because="stream harm alarmed")
    again = certificates.revoked(revoked, at=NOW + timedelta(days=2), because="another")
    assert not certificates.live(revoked.certificate, NOW + timedelta(days=1))
    assert again == revoked
    assert certificates.record_sha256(revoked) == certificates.record_sha256(record)
    with pytest.raises(InvalidSample, match="no certificate"):
        certificates.revoked(record.model_copy(update={"certificate": None}), at=NOW, because="x")


@pytest.mark.parametrize(
    ("k", "n", "alpha", "verdict"),
    [
        (31, 500, 0.1, CertificateVerdict.CERTIFIED),
        (42, 500, 0.1, CertificateVerdict.UNPROVEN),
        (90, 500, 0.1, CertificateVerdict.BREACHED),
        (16, 500, 0.05, CertificateVerdict.CERTIFIED),
        (17, 500, 0.05, CertificateVerdict.UNPROVEN),
        (0, 59, 0.05, CertificateVerdict.CERTIFIED),
        (0, 58, 0.05, CertificateVerdict.UNPROVEN),
    ],
)
def test_verdicts(k, n, alpha, verdict):
    """Certified, unproven and breached, at the very counts where they change; only a certified one has an id and an end."""
    evidence = certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=alpha), Sample.counts(k, n))
    record = certificates.record(evidence, BOUND, issue=ISSUE)
    assert record.certificate.verdict is verdict
    issued = verdict is CertificateVerdict.CERTIFIED
    assert (record.certificate.expires_at is not None, record.certificate.certificate_id is not None) == (issued, issued)
    assert record.status is (Status.PASSED if issued else Status.FAILED)
    assert certificates.live(record.certificate, NOW) is issued


@given(st.integers(20, 600), st.data(), st.floats(0.01, 0.5))
@settings(max_examples=40)
def test_certified_is_what_the_test_says(n, data, alpha):
    """The verdict certified and p <= delta are the same thing, and no verdict is certified and breached."""
    k = data.draw(st.integers(0, n))
    evidence = certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=alpha), Sample.counts(k, n))
    assert (evidence.verdict is CertificateVerdict.CERTIFIED) == (evidence.p_value <= 0.05)
    assert evidence.lower <= k / n <= evidence.upper


def test_what_was_registered_is_kept():
    """Another n than the registered one is refused; the hash moves with every term; without registration the record says so."""
    with pytest.raises(InvalidSample, match="registered"):
        certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1, n=400), Sample.counts(31, 500))
    terms = [
        Terms(loss=Loss.HARM_ALL, alpha=0.1, n=500),
        Terms(loss=Loss.HARM_ALL, alpha=0.1, n=501),
        Terms(loss=Loss.HARM_ALL, alpha=0.11, n=500),
        Terms(loss=Loss.HARM_ALL, alpha=0.1, n=500, delta=0.04),
        Terms(loss=Loss.HARM_ALL, alpha=0.1, n=500, method="hb"),
        Terms(loss=Loss.OUTCOME_DIVERGENCE, alpha=0.1, n=500),
        Terms(loss=Loss.HARM_ALL, alpha=0.1, n=500, unit=Unit.SESSION),
    ]
    assert len({t.sha256() for t in terms}) == len(terms)
    assert Terms(loss=Loss.HARM_ALL, alpha=0.1, n=500, method="exact").sha256() == terms[0].sha256()
    assert any("not registered" in w for w in made().warnings)
    registered = certificates.record(certificates.assess(terms[0], Sample.counts(31, 500)), BOUND, issue=ISSUE)
    assert registered.certificate.registration_sha256 == terms[0].sha256()
    assert not any("not registered" in w for w in registered.warnings)


def test_turns_types_and_small_samples_are_refused():
    """Fewer than twenty units, another type than the loss declares, and turns are no ground for a certificate."""
    with pytest.raises(InvalidSample, match="too few"):
        certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1), Sample.counts(0, 19))
    with pytest.raises(InvalidSample, match="declared graded"):
        certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1), Sample.graded([0.0] * 50))
    with pytest.raises(InvalidSample, match="independent"):
        certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1, unit=Unit.TURN), Sample.counts(0, 50))
    flagged = certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1, unit=Unit.TURN, turns_are_independent=True), Sample.counts(0, 50))
    assert any("assumes independent units" in w for w in flagged.warnings)
    for broken in ({"alpha": 0.0}, {"alpha": 0.1, "delta": 1.0}, {"alpha": 0.1, "method": "wald"}):
        with pytest.raises(InvalidSample):
            Terms(loss=Loss.HARM_ALL, **broken)


def test_a_life_is_finite():
    """A certificate without an end, or for longer than a year, is refused."""
    evidence = certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1), Sample.counts(0, 100))
    for life in (timedelta(0), timedelta(days=-1), timedelta(days=400)):
        with pytest.raises(InvalidSample, match="lives"):
            certificates.record(evidence, BOUND, issue=Issue(id=UUID(int=1), now=NOW, life=life))


def test_a_chain_shows_what_came_before():
    """A certificate carries the hash of the one that it follows; another record has another hash."""
    first, second = made(), made(k=30)
    assert certificates.record_sha256(first) != certificates.record_sha256(second)
    evidence = certificates.assess(Terms(loss=Loss.HARM_ALL, alpha=0.1), Sample.counts(31, 500))
    after = Bound(
        compressor=BOUND.compressor, judge=BOUND.judge, grader=BOUND.grader, data=BOUND.data,
        previous_sha256=certificates.record_sha256(first),
    )  # fmt: skip
    record = certificates.record(evidence, after, issue=ISSUE)
    assert record.subject.parameters["previous_sha256"] == certificates.record_sha256(first)


def test_the_fingerprint_does_not_depend_on_load_order():
    """Units in another order have the same hash; another loss has another."""
    one = {"a": "0", "b": "1"}
    assert certificates.fingerprint(one) == certificates.fingerprint(dict(reversed(one.items())))
    assert certificates.fingerprint(one) != certificates.fingerprint(one | {"b": "0"})
    assert certificates.fingerprint({"\ud800": "\x00"}) != certificates.fingerprint({"": ""})


@pytest.mark.parametrize("loss", [Loss.DECISION_HARM, Loss.GRADED])
def test_graded_and_paired_certificates(loss):
    """Losses one by one are bounded by the grid mixture, valid at every look, and hashed in their order."""
    values = [0.0] * 190 + [1.0] * 10
    sample = Sample.of(loss.type, values)
    evidence = certificates.assess(Terms(loss=loss, alpha=0.25), sample)
    record = certificates.record(evidence, BOUND, issue=ISSUE)
    assert record.certificate.method == "grid"
    assert "valid at every look" in record.certificate.statement
    assert record.subject.parameters["guarantee"] == "anytime"
    assert record.certificate.values_sha256 == certificates.values_sha256(values)
