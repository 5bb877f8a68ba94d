"""The simulations, a section a table. Each is seeded by its own name, so that one section alone gives the same figures."""

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tests.benchmarks.assure import expected
from tests.benchmarks.assure.checks import Check, delay, false_alarms
from tests.benchmarks.assure.references import Agrapa, Ons
from winnow.assurance import simulation as sim
from winnow.assurance.blocks import of_losses
from winnow.assurance.changepoint import change_window
from winnow.assurance.config import MonitorConfig
from winnow.assurance.designs import DEFAULT, DESIGNS, Design
from winnow.assurance.recovery import recovery_config
from winnow.assurance.simulation import Runs
from winnow.assurance.streams import divergence

DELTA = 0.05
ALPHAS = (0.05, 0.10, 0.15)
FACTORS = (1.5, 2.0, 3.0)
NUS = (0, 500, 5000)
#: Streams of a family.
STREAMS = 100
#: Units after which an undetected change counts as found.
CAP = 15_000

Section = Callable[[float], Iterator[Check]]


def rng(name: str) -> np.random.Generator:
    return np.random.default_rng([2026, zlib.crc32(name.encode())])


def config(method: str, alpha: float, lo: float = 0.0) -> tuple[MonitorConfig, type[Runs]]:
    """Return the configuration that a table's row names, and the rule that folds it."""
    name, _, _ = method.partition(" ")
    if method.startswith("horizon"):
        return MonitorConfig(alpha=alpha, lo=lo, method="grid7", mode="horizon", horizon=20_000), Runs
    if method.startswith("arl"):
        return MonitorConfig(alpha=alpha, lo=lo, method="grid7", mode="arl", arl=float(method.split()[1].rstrip(","))), Runs
    kinds = {"ONS": Ons, "aGRAPA": Agrapa}
    return MonitorConfig(alpha=alpha, lo=lo, method="seed" if name in kinds else name), kinds.get(name, Runs)


def pfa(scale: float) -> Iterator[Check]:
    """Chance of an alarm while the risk is exactly the budget, and at nine tenths of it."""
    for method in (DEFAULT, *expected.PFA):
        runs = max(200, int((4_000 if method in {DEFAULT, "spending"} else 2_000) * scale))
        delta = None if method.startswith("arl") else DELTA
        for alpha in ALPHAS:
            c, kind = config(method, alpha)
            alarms = sim.first_alarms(c, sim.bernoulli(alpha), runs=runs, units=20_000, rng=rng(f"pfa {method} {alpha}"), kind=kind)
            for i, n in enumerate((500, 5_000, 20_000)):
                wanted = expected.PFA[method][alpha][i] if method in expected.PFA else None
                found = int(((alarms > 0) & (alarms <= n)).sum())
                column = f"alpha {alpha:g}, by {n:,}"
                yield false_alarms("pfa", method, column, alarms=found, runs=runs, delta=delta, expected=wanted)
            below = sim.first_alarms(c, sim.bernoulli(0.9 * alpha), runs=runs, units=5_000, rng=rng(f"below {method} {alpha}"), kind=kind)
            wanted = expected.PFA_BELOW[method][ALPHAS.index(alpha)] if method in expected.PFA_BELOW else None
            column = f"alpha {alpha:g}, at .9 alpha by 5,000"
            yield false_alarms("pfa", method, column, alarms=int((below > 0).sum()), runs=runs, delta=delta, expected=wanted)


def delays(scale: float) -> Iterator[Check]:
    """Mean units from the change to the alarm, binary losses."""
    runs = max(100, int(2_000 * scale))
    for method in (DEFAULT, *expected.DELAY):
        for alpha in ALPHAS:
            c, kind = config(method, alpha)
            for nu in NUS:
                changed = [sim.bernoulli(f * alpha) for f in FACTORS]
                source = rng(f"delay {alpha} {nu}")  # the same streams for every method
                found = sim.delays(c, sim.bernoulli(0.5 * alpha), changed, nu=nu, runs=runs, rng=source, cap=CAP, kind=kind)
                wanted = expected.DELAY.get(method, {}).get((alpha, nu), (None,) * 3)
                for factor, one, want in zip(FACTORS, found, wanted, strict=True):
                    yield _mean("delay", method, f"alpha {alpha:g}, nu {nu:,}, {factor:g}x", one, want)


def _mean(table: str, row: str, column: str, found: sim.Delays, wanted: float | None) -> Check:
    error = float(found.units.std()) / math.sqrt(len(found.units))
    return delay(table, row, column, value=found.mean, runs=len(found.units), expected=wanted, error=error)


def other(scale: float) -> Iterator[Check]:
    """Graded and paired losses: mean delays, and false alarms at the boundary."""
    runs = max(100, int(2_000 * scale))
    kinds: dict[str, tuple[float, float, Callable[[float], sim.Draw], float, tuple[float, ...], float]] = {
        "zero-inflated Beta, alpha .05, .025 to .075/.10/.15": (0.05, 0.0, sim.zero_inflated_beta, 0.025, (0.075, 0.10, 0.15), 0.05),
        "uniform, alpha .10, .05 to .15/.20/.30": (0.10, 0.0, sim.uniform, 0.05, (0.15, 0.20, 0.30), 0.10),
        "paired, floor .15, alpha .05, .01 to .10/.15/.25": (0.05, -1.0, sim.paired, 0.01, (0.10, 0.15, 0.25), 0.05),
    }
    for name, (alpha, lo, draw, healthy, changed, boundary) in kinds.items():
        for method in (DEFAULT, "spending", "seed"):
            c, kind = config(method, alpha, lo)
            for nu in NUS:
                source = rng(f"{name} {nu}")
                found = sim.delays(c, draw(healthy), [draw(x) for x in changed], nu=nu, runs=runs, rng=source, cap=10_000, kind=kind)
                wanted = expected.OTHER[name].get(method, {}).get(nu, (None,) * 3)
                for x, one, want in zip(changed, found, wanted, strict=True):
                    yield _mean(f"other: {name}", method, f"nu {nu:,}, to {x:g}", one, want)
            alarms = sim.first_alarms(c, draw(boundary), runs=runs, units=5_000, rng=rng(f"{name} boundary"), kind=kind)
            count = int((alarms > 0).sum())
            yield false_alarms(f"other: {name}", method, "alarms at the boundary", alarms=count, runs=runs, delta=DELTA, expected=None)


def power(scale: float) -> Iterator[Check]:
    """Units that half and nine tenths of the runs need, after a change at 1,000."""
    runs = max(200, int(1_500 * scale))
    for method in (DEFAULT, "spending"):
        for (alpha, factor), wanted in expected.POWER.items():
            c, _ = config(method, alpha)
            source = rng(f"power {alpha} {factor}")
            (found,) = sim.delays(c, sim.bernoulli(0.5 * alpha), [sim.bernoulli(factor * alpha)], nu=1_000, runs=runs, rng=source)
            for q, want in zip((0.5, 0.9), wanted, strict=True):
                value = found.quantile(q)
                spread = 2.5 * float(found.units.std()) / math.sqrt(len(found.units))  # of a quantile, by simulation of these
                row, column = f"{method}, p{q * 100:.0f}", f"alpha {alpha:g}, {factor:g}x"
                want_here = float(want) if method == "spending" else None
                yield delay("power", row, column, value=value, runs=runs, expected=want_here, share=0.10, error=spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a rule did in repetitions of a hundred streams."""

    #: Repetitions with a false alarm, and the mean share of false ones among the alarms.
    any_false: int
    fdr: float
    #: Mean delay of the drifting streams, or of the fleet's alarm; and its standard error.
    mean: float
    error: float


def streams(scale: float) -> Iterator[Check]:
    """A hundred streams with one error budget: false discoveries and delays."""
    repetitions = max(10, int(100 * scale))
    for drifting, factor in ((0, 2.0), (1, 2.0), (10, 2.0), (50, 2.0), (100, 1.5)):
        found = _family(drifting, factor, repetitions, rng(f"streams {drifting}"))
        for rule, family in found.items():
            none, *some, together = expected.STREAMS[rule]
            limit = None if rule == "no correction" else DELTA
            if not drifting:
                alarms, column = family.any_false, "none drifts: any alarm"
                yield false_alarms("streams", rule, column, alarms=alarms, runs=repetitions, delta=limit, expected=none)
                continue
            fdr, mean = (None, together) if drifting == STREAMS else some[(1, 10, 50).index(drifting)]
            title = "all drift by 1.5x" if drifting == STREAMS else f"{drifting} drift"
            column = f"{title}: delay"
            yield delay("streams", rule, column, value=family.mean, runs=repetitions, expected=mean, share=0.10, error=family.error)
            if fdr is not None:
                column = f"{title}: FDR"
                yield Check(table="streams", row=rule, column=column, value=family.fdr, expected=fdr, most=limit, runs=repetitions)


def _family(drifting: int, factor: float, repetitions: int, source: np.random.Generator) -> dict[str, Family]:
    """Watch the streams under each rule: a stream alarms by the rule's level and is frozen there; the fleet by the mean of all."""
    alpha, nu, after = 0.10, 500, 2_000 if drifting else 5_000
    # Where all drift together they were healthy before; else the streams are at the budget, which is the hardest for the promise.
    healthy = 0.5 * alpha if drifting == STREAMS else alpha
    runs = Runs(MonitorConfig(alpha=alpha, method="grid7"), repetitions * STREAMS)
    bad = np.zeros((repetitions, STREAMS), dtype=bool)
    bad[:, :drifting] = True
    frozen = {rule: np.zeros(bad.shape) for rule in ("no correction", "Bonferroni", "e-BH, frozen")}
    when = {rule: np.zeros(bad.shape, dtype=np.int64) for rule in frozen}
    fleet = np.zeros(repetitions, dtype=np.int64)
    for t in range(1, nu + after + 1):
        risk = np.where(bad & (t > nu), factor * alpha, healthy)
        m = runs.fold((source.random(bad.size) < risk.ravel()).astype(float)).reshape(bad.shape)
        fleet[(m.mean(axis=1) >= 1 / DELTA) & (fleet == 0)] = t
        for rule, values in frozen.items():
            held = np.where(when[rule] > 0, values, m)
            new = (held >= _levels(rule, held)) & (when[rule] == 0)
            values[new], when[rule][new] = m[new], t
        if drifting and all((w[:, :drifting] > 0).all() for w in when.values()):
            break
    found = {}
    for rule, w in when.items():
        false = ((w > 0) & ~bad).sum(axis=1)
        fdr = float((false / np.maximum(1, (w > 0).sum(axis=1))).mean())
        found[rule] = Family(any_false=int((false > 0).sum()), fdr=fdr, **_late(w[:, :drifting], nu, after))
    found["mean of e-values"] = Family(any_false=int((fleet > 0).sum()), fdr=math.nan, **_late(fleet[:, None], nu, after))
    return found


def _levels(rule: str, held: sim.Floats) -> sim.Floats:
    """Evidence at which a rule alarms the streams of each repetition."""
    if rule != "e-BH, frozen":
        return np.array([[(1 if rule == "no correction" else STREAMS) / DELTA]])
    k = np.arange(1, STREAMS + 1)
    rejected = (k * (-np.sort(-held, axis=1) >= STREAMS / (k * DELTA))).max(axis=1)
    return np.where(rejected > 0, STREAMS / (np.maximum(rejected, 1) * DELTA), np.inf)[:, None]


def _late(when: sim.Ints, nu: int, after: int) -> dict[str, float]:
    """Mean delay, with its standard error, of those that did not alarm before the change; undetected ones count in full."""
    units = np.where(when == 0, after, when - nu)
    each = [row[row > 0].mean() for row in units if (row > 0).any()]
    if not each:
        return {"mean": math.nan, "error": math.nan}
    return {"mean": float(units[units > 0].mean()), "error": float(np.std(each)) / math.sqrt(len(each))}


def recovery(scale: float) -> Iterator[Check]:
    """Units until a healthy risk is certified after an alarm, and how often a risk at the budget is."""
    runs = max(200, int(2_000 * scale))
    for (alpha, share), wanted in expected.RECOVERY.items():
        c = recovery_config(MonitorConfig(alpha=alpha), delta=DELTA)
        source = rng(f"recovery {alpha} {share}")
        alarms = sim.first_alarms(c, sim.bernoulli(1 - share * alpha), runs=runs, units=CAP, rng=source)
        units = np.where(alarms == 0, CAP, alarms)
        column = f"alpha {alpha:g}, true {share:g} alpha"
        error = float(units.std()) / math.sqrt(runs)
        yield delay("recovery", "mean", column, value=float(units.mean()), runs=runs, expected=wanted[0], error=error)
        p90 = float(np.quantile(units, 0.9))
        yield delay("recovery", "p90", column, value=p90, runs=runs, expected=wanted[1], share=0.10, error=2 * error)
    for alpha in (0.05, 0.10):
        c = recovery_config(MonitorConfig(alpha=alpha), delta=DELTA)
        alarms = sim.first_alarms(c, sim.bernoulli(1 - alpha), runs=runs, units=5_000, rng=rng(f"false recovery {alpha}"))
        count = int((alarms > 0).sum())
        column = f"alpha {alpha:g}, true 1 alpha: accepted by 5,000"
        yield false_alarms("recovery", "false acceptance", column, alarms=count, runs=runs, delta=DELTA, expected=0.03)


def change(scale: float) -> Iterator[Check]:
    """How far the located change is from the true one, and how often the likely window holds it."""
    runs, nu = max(100, int(600 * scale)), 2_000
    for (alpha, factor), wanted in expected.CHANGE.items():
        c, _ = config("spending", alpha)
        source = rng(f"change {alpha} {factor}")
        losses = np.empty((nu + CAP, runs))
        losses[:nu] = source.random((nu, runs)) < 0.5 * alpha
        losses[nu:] = source.random((CAP, runs)) < factor * alpha
        alarms = _replayed(c, losses)
        far, held = [], 0
        for run in np.flatnonzero(alarms > nu):
            window = change_window(of_losses(losses[: alarms[run], run].tolist(), 40_000))
            assert window is not None
            far.append(abs(window.best - (nu + 1)))
            held += window.first <= nu + 1 <= window.last
        column = f"alpha {alpha:g}, {factor:g}x"
        for row, q, want in (("median distance", 0.5, wanted[0]), ("p90", 0.9, wanted[1])):
            value = float(np.quantile(far, q))
            error = math.sqrt(2) * _quantile_error(far, q)  # what was specified is a sample of this size, too
            yield delay("change", row, column, value=value, runs=len(far), expected=want, share=0.10, error=error)
        yield Check(
            table="change", row="window holds it", column=column, value=held / len(far), expected=0.9, tolerance=0.06, runs=len(far)
        )


def _quantile_error(values: list[int], q: float) -> float:
    """Standard error of a sample quantile, from the order statistics one standard deviation of the rank to both sides."""
    step = math.sqrt(q * (1 - q) / len(values))
    low, high = np.quantile(values, [max(0.0, q - step), min(1.0, q + step)])
    return float(high - low) / 2


def _replayed(c: MonitorConfig, losses: sim.Floats) -> sim.Ints:
    """First alarms of recorded losses, units by runs; 0: none."""
    state, alarms = Runs(c, losses.shape[1]), np.zeros(losses.shape[1], dtype=np.int64)
    for t, x in enumerate(losses, start=1):
        alarms[(state.fold(x) >= c.level) & (alarms == 0)] = t
        if t % 200 == 0 and (alarms > 0).all():
            break
    return alarms


def clusters(scale: float) -> Iterator[Check]:
    """What happens where turns of one run are folded as if they were independent."""
    runs, alpha, turns, trajectories = max(100, int(2_000 * scale)), 0.10, 10, 500
    for i, icc in enumerate((0.0, 0.05, 0.1, 0.2, 0.4)):
        source = rng(f"clusters {icc}")
        risk: sim.Floats | float = alpha
        monitors = {
            f"{unit}, {m}": Runs(MonitorConfig(alpha=alpha, method=m), runs)
            for unit in ("turns", "trajectories")
            for m in ("grid7", "spending")
        }
        alarmed = {name: np.zeros(runs, dtype=bool) for name in monitors}
        for _ in range(trajectories):
            if icc:
                risk = source.beta(alpha * (1 - icc) / icc, (1 - alpha) * (1 - icc) / icc, runs)
            losses = (source.random((turns, runs)) < risk).astype(float)
            for name, state in monitors.items():
                for x in losses if name.startswith("turns") else [losses.mean(axis=0)]:
                    alarmed[name] |= state.fold(x) >= 1 / DELTA
        for name, seen in alarmed.items():
            limit = DELTA if name.startswith("trajectories") or not icc else None
            want = expected.CLUSTERS[name][i]
            yield false_alarms("clusters", name, f"ICC {icc:g}", alarms=int(seen.sum()), runs=runs, delta=limit, expected=want)


#: Shares of the capital staked on the first unit: the points of the frontier.
OPENINGS = (0.5, 0.75, 0.88, 0.97)


def frontier(scale: float) -> Iterator[Check]:
    """Mean delays of designs between early and late, for the frontier; the other methods' are those of `delays`."""
    candidates: dict[str, Design] = {"spending": DESIGNS["spending"]}
    for name in ("spending", "patient"):
        for share in OPENINGS:
            made = replace(DESIGNS[name], schedule=replace(DESIGNS[name].schedule, opening=share))
            if made not in candidates.values():
                candidates[f"{name}, opening {share:g}" if made != DESIGNS[name] else name] = made
    for name, design in candidates.items():
        for alpha in ALPHAS:
            c = MonitorConfig(alpha=alpha, method=name, bets=design)
            for nu in (*NUS, 50_000):
                runs = max(100, int((400 if nu == 50_000 else 1_500) * scale))
                source = rng(f"delay {alpha} {nu}")
                found = sim.delays(c, sim.bernoulli(0.5 * alpha), [sim.bernoulli(f * alpha) for f in FACTORS], nu=nu, runs=runs, rng=source)
                for factor, one in zip(FACTORS, found, strict=True):
                    yield _mean("frontier", name, f"alpha {alpha:g}, nu {nu:,}, {factor:g}x", one, None)


def elsewhere(scale: float) -> Iterator[Check]:
    """Settings that neither design was made for: other budgets, small and large changes, a healthier and a hardly healthy past."""
    runs = max(100, int(1_000 * scale))
    settings = [(0.02, 0.5, (1.25, 2.0, 4.0)), (0.20, 0.5, (1.25, 2.0, 4.0)), (0.10, 0.5, (1.25, 1.75, 5.0))]
    settings += [(0.10, q, (1.5, 2.0, 3.0)) for q in (0.1, 0.8, 1.0)]
    for alpha, q, factors in settings:
        for nu in NUS:
            for method in (DEFAULT, "spending"):
                c, _ = config(method, alpha)
                source = rng(f"elsewhere {alpha} {q} {nu}")
                changed = [sim.bernoulli(f * alpha) for f in factors]
                found = sim.delays(c, sim.bernoulli(q * alpha), changed, nu=nu, runs=runs, rng=source, cap=60_000)
                for factor, one in zip(factors, found, strict=True):
                    yield _mean(f"elsewhere: alpha {alpha:g}, healthy at {q:g} alpha", method, f"nu {nu:,}, {factor:g}x", one, None)


def bound(alpha: float, factor: float) -> float:
    """Least mean delay at a false-alarm chance of delta: ln(1/delta)/KL."""
    return math.log(1 / DELTA) / divergence(factor * alpha, alpha)


SECTIONS: dict[str, Section] = {
    "pfa": pfa,
    "delays": delays,
    "other": other,
    "power": power,
    "streams": streams,
    "recovery": recovery,
    "change": change,
    "clusters": clusters,
    "frontier": frontier,
    "elsewhere": elsewhere,
}
