"""The features by their plain definition: slow, without any index, sharing with the package only the word lists and the value extractor.

What an entry's values are is a list of forms (tested by example); what is computed from them is defined here a second time.
"""

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from winnow.compaction.style import IMPERATIVE as IMPERATIVES
from winnow.compaction.style import MODAL as MODALS
from winnow.compaction.style import OBSERVATION as OBSERVATIONS
from winnow.compaction.text import STOP_WORDS as STOPS
from winnow.compaction.values import Value, values_of

SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "s", "ly")
WORD = re.compile(r"[A-Za-z0-9_]+")
CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
MARKER = re.compile(r"\s*(?:(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?|\[[ xX]\]\s+)")
THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")


def bare(entry: str) -> str:
    """An entry without its marker and thousands separators."""
    return THOUSANDS.sub("", MARKER.sub("", entry, count=1) if MARKER.match(entry) else entry)


def stem(token: str) -> str:
    if token.isalpha():
        for suffix in SUFFIXES:
            if token.endswith(suffix) and len(token) - len(suffix) >= 4:
                return token[: -len(suffix)]
    return token


def tokens(text: str) -> list[str]:
    """Tokens of an ASCII text."""
    found: list[str] = []
    for word in WORD.findall(THOUSANDS.sub("", text)):
        forms = [word]
        segments = [segment for segment in word.split("_") if segment]
        if segments != [word] and "_" in word:
            forms += segments
        for segment in segments:
            humps = [] if any(char.isdigit() for char in segment) else CAMEL.findall(segment)
            forms += humps if len(humps) > 1 else []
        found += [stem(form.lower()) for form in forms if form.lower() not in STOPS]
    return found


def windows(text: str, size: int) -> list[str]:
    """A text cut to windows, each backed up to the last newline, else comma and blank, else blank of its second half."""
    found = []
    while len(text) > size:
        half = text[size // 2 : size]
        for separator in ("\n", ", ", " "):
            if separator in half:
                cut = size // 2 + half.rindex(separator) + len(separator)
                break
        else:
            cut = size
        found.append(text[:cut])
        text = text[cut:]
    return [*found, text] if text else found


def holds(value: Value, text: str) -> bool:
    """Whether a lower-case text holds a value in one of its ways."""

    def one(needle: str) -> bool:
        if needle.isascii() and needle.isdigit() and len(needle) <= 3:
            return re.search(rf"(?<![0-9.]){needle}(?![0-9])", text) is not None
        return needle in text

    return any(all(one(needle) for needle in way) for way in value.ways)


def subsequence(left: str, right: str) -> int:
    """Length of the longest common subsequence, by the table of all prefixes."""
    row = [0] * (len(right) + 1)
    for char in left:
        diagonal = 0
        for at, other in enumerate(right, 1):
            diagonal, row[at] = row[at], diagonal + 1 if char == other else max(row[at], row[at - 1])
    return row[-1]


def pairs(texts: Sequence[str]) -> set[tuple[str, str]]:
    """Token pairs at distance 1 and 2."""
    found: set[tuple[str, str]] = set()
    for text in texts:
        stream = tokens(text)
        found |= set(pairwise(stream)) | set(zip(stream, stream[2:], strict=False))
    return found


def features(
    entries: Sequence[str], *, task: str, previous: Sequence[str], outputs: Sequence[str], users: Sequence[str], actions: Sequence[str]
):
    """The features of each entry of a boundary with ASCII texts."""
    previous = [bare(entry) for entry in previous]
    passages = [(at, passage) for at, text in enumerate(outputs) for passage in windows(text, 300)]
    sets = [set(tokens(passage)) for _, passage in passages]
    frequency = {word: sum(word in of_passage for of_passage in sets) for word in set().union(*sets)}

    def idf(word: str) -> float:
        held = frequency.get(word, 0)
        return math.log(1 + (len(sets) - held + 0.5) / (held + 0.5))

    def words(texts: Sequence[str]) -> set[str]:
        return {word for text in texts for word in tokens(text)}

    def low(texts: Sequence[str]) -> list[str]:
        return [THOUSANDS.sub("", text).lower() for text in texts]

    said = {"P": words([task]), "U": words(users), "A": words(actions), "M": words(previous), "E": set().union(*sets)}
    paired = {"P": pairs([task]), "U": pairs(users), "A": pairs(actions), "M": pairs(previous)}
    # Passages are normalised one by one; joined again they are the output.
    outputs_low = ["".join(low([passage for at, passage in passages if at == number])) for number in range(len(outputs))]
    lower = {"P": low([task]), "U": low(users), "A": low(actions), "M": low(previous), "E": outputs_low}
    places = list(low([passage for _, passage in passages]))
    neighbours = [
        places[at] + (places[at + 1] if at + 1 < len(places) and passages[at + 1][0] == passages[at][0] else "")
        for at in range(len(places))
    ] + lower["M"]

    found = []
    for entry in entries:
        text = bare(entry)
        stream = tokens(text)
        distinct = list(dict.fromkeys(stream))
        total = sum(idf(word) for word in distinct) or 1.0

        def share(held: set[str], distinct=distinct, total=total) -> float:
            return sum(idf(word) for word in distinct if word in held) / total

        values = values_of(text)
        count = len(values) or 1
        says = {role: [holds(value, "\0".join(texts)) for value in values] for role, texts in lower.items()}
        env = [e or m for e, m in zip(says["E"], says["M"], strict=True)]
        told = [p or u for p, u in zip(says["P"], says["U"], strict=True)]
        adjacent = list(pairwise(stream))
        shown = [word.lower() for word in WORD.findall(text)]
        spaced = f" {' '.join(shown)} "
        covers = [share(set(tokens(unit))) for unit in previous]
        # The two units that cover most of it, the first ones of equals, and at least half.
        near = [at for at in sorted(range(len(previous)), key=lambda at, covers=covers: -covers[at])[:2] if covers[at] >= 0.5]
        alike = [2 * subsequence(text, previous[at]) / (len(text) + len(previous[at])) for at in near]
        first = text.split(maxsplit=1)[0].strip("`*_:,.()\"'").lower() if text.split() else ""
        found.append(
            {
                "novel_pass": max((share(one - said["P"] - said["U"]) for one in sets), default=0.0),
                "cov_pass": max((share(one) for one in sets), default=0.0),
                "env_only": max((share(one - said["P"] - said["U"] - said["A"]) for one in sets), default=0.0),
                "cov_env": share(said["E"]),
                "cov_prev": share(said["M"]),
                "cov_task": share(said["P"] | said["U"]),
                "cov_user": share(said["U"]),
                "cov_act": share(said["A"]),
                "bg_prev": sum(pair in paired["M"] for pair in adjacent) / (len(adjacent) or 1),
                "bg_user": sum(pair in paired["U"] for pair in adjacent) / (len(adjacent) or 1),
                "bg_non": sum(pair in paired["P"] | paired["U"] | paired["A"] for pair in adjacent) / (len(adjacent) or 1),
                "val2_env": sum(e and not t for e, t in zip(env, told, strict=True)) / count,
                "val2_orph": sum(not e and not t for e, t in zip(env, told, strict=True)) / count,
                "val_cooc": max((sum(holds(value, place) for value in values) for place in neighbours), default=0) / count,
                "carried": max(alike, default=0.0) > 0.85,
                "cov_unit_best": max(covers, default=0.0),
                "obs": float(
                    bool(OBSERVATIONS & set(shown))
                    or " is already " in spaced
                    or any(a in {"was", "were"} and b.endswith("ed") for a, b in pairwise(shown))
                ),
                "modal": float(
                    bool(MODALS & set(shown))
                    or any(f" {phrase} " in spaced for phrase in ("need to", "needs to", "plan to", "plans to", "ask to", "instead of"))
                ),
                "imper": float(first in IMPERATIVES),
            }
        )
    return found
