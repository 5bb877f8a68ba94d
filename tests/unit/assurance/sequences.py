"""Sequences of losses that the golden vectors name: a linear congruential generator, so that any language can repeat them."""

from collections.abc import Iterator


def uniforms(start: int) -> Iterator[float]:
    """Yield x/2^31 after each step of x <- (1103515245·x + 12345) mod 2^31."""
    x = start
    while True:
        x = (1103515245 * x + 12345) % 2**31
        yield x / 2**31


def bernoulli(source: Iterator[float], p: float, n: int) -> list[float]:
    return [float(next(source) < p) for _ in range(n)]


def graded(source: Iterator[float], most: float, n: int) -> list[float]:
    return [most * next(source) for _ in range(n)]


def paired(source: Iterator[float], harm: float, n: int) -> list[float]:
    """Yield paired differences over a noise floor of .15: -1, 0 or 1."""
    return [-1.0 if u < 0.075 else 1.0 if u < 0.15 + harm else 0.0 for u in (next(source) for _ in range(n))]


def golden() -> dict[str, tuple[float, float, list[float]]]:
    """Return alpha, lo and losses of each golden run, by its name."""
    case4, case5, case6 = uniforms(2024), uniforms(99), uniforms(5)
    return {
        "zeros x100": (0.1, 0.0, [0.0] * 100),
        "ones x10": (0.1, 0.0, [1.0] * 10),
        "alternating 0,1 x40": (0.1, 0.0, [0.0, 1.0] * 20),
        "bern(.05)x2000 then bern(.2)x800, lcg seed 2024 continued": (
            0.1,
            0.0,
            bernoulli(case4, 0.05, 2000) + bernoulli(case4, 0.2, 800),
        ),
        "graded unif(.2)x500 then unif(.5)x200, lcg 99 continued": (0.15, 0.0, graded(case5, 0.2, 500) + graded(case5, 0.5, 200)),
        "paired d: u<.075:-1, u<.15+h:+1 else 0; h=.01 for first 1000 then .2, lcg 5": (
            0.05,
            -1.0,
            paired(case6, 0.01, 1000) + paired(case6, 0.2, 500),
        ),
        "boundary bern(.1)x5000 lcg 11": (0.1, 0.0, bernoulli(uniforms(11), 0.1, 5000)),
    }
