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


def unescaped(text: str) -> str:
    return re.sub(r'\\([nt"])', lambda match: {"n": "\n", "t": "\t", '"': '"'}[match[1]], text)


def best_stretch(tokens_of: Sequence[str], held: set[str], weight, cost: float) -> float:
    """The largest sum of a stretch of tokens: the weight of those held, less `cost` times that of the others; by trying them all."""
    gains = [weight(word) if word in held else -cost * weight(word) for word in tokens_of]
    return max([sum(gains[begin:end]) for begin in range(len(gains)) for end in range(begin + 1, len(gains) + 1)] + [0.0])


def place(needle: str, pieces: Sequence[str]) -> int:
    """Number of the piece in which the first standing of a needle begins, where pieces follow each other without a gap; -1: none."""
    if needle.isascii() and needle.isdigit() and len(needle) <= 3:
        return next((at for at, piece in enumerate(pieces) if re.search(rf"(?<![0-9.]){needle}(?![0-9])", piece)), -1)
    found = "".join(pieces).find(needle)
    ends = [sum(map(len, pieces[: at + 1])) for at in range(len(pieces))]
    return next((at for at, end in enumerate(ends) if 0 <= found < end), -1)


def keys_and_values(output: str) -> set[tuple[str, str]]:
    """Words on both sides of a colon or equals sign in one line, quotes and brackets aside."""
    found = set()
    for line in output.split("\n"):
        words = re.findall(r"[:=]|[^\s\"'{}\[\](),;:=]+", line)
        found |= {
            (words[at - 1], words[at + 1]) for at in range(1, len(words) - 1) if words[at] in ":=" and re.match("[A-Za-z_]", words[at - 1])
        }
    return {(key, value) for key, value in found if value not in ":="}


def agreeing(entry: Sequence[str], outputs: Sequence[str]) -> set[str]:
    """Tokens of an entry that are a field's value, or a word of its key or one that begins like it, where the entry holds both."""
    held: set[str] = set()
    for key, value in set().union(*map(keys_and_values, outputs)):
        said = tuple(tokens(value))
        words = {word for word in tokens(key) if word not in said}
        forms = words | {word[:6] for word in words if len(word) >= 4}
        told = 1 <= len(said) <= 4 and set(said) <= set(entry) and not set(said) <= {"true", "fals", "none", "null", "0", "1"}
        named = {word for word in entry if word in forms or (len(word) >= 4 and word[:6] in forms)}
        if told and named:
            held |= {*said, *named}
    return held


def features(  # noqa: C901, PLR0915  all definitions in one place, to be read from top to bottom
    entries: Sequence[str], *, task: str, previous: Sequence[str], spoken: Sequence[tuple[str, str]]
):
    """The features of each entry of a boundary with ASCII texts; `spoken` are the messages in order, E, U or A with its text."""
    previous = [bare(entry) for entry in previous]
    spoken = [(who, unescaped(text) if who == "A" else text) for who, text in spoken]
    outputs, users, actions = ([text for who, text in spoken if who == role] for role in "EUA")
    passages = [(at, passage) for at, text in enumerate(outputs) for passage in windows(text, 300)]
    sets = [set(tokens(passage)) for _, passage in passages]
    everything = [*sets, *map(set, map(tokens, previous)), set(tokens(task)), *(set(tokens(t)) for who, t in spoken if who != "E" and t)]

    def rarity(sets: Sequence[set[str]]):
        frequency = {word: sum(word in of_text for of_text in sets) for word in set().union(*sets)}
        return lambda word: math.log(1 + (len(sets) - frequency.get(word, 0) + 0.5) / (frequency.get(word, 0) + 0.5))

    idf, spread = rarity(sets), rarity(everything)

    def words(texts: Sequence[str]) -> set[str]:
        return {word for text in texts for word in tokens(text)}

    def low(texts: Sequence[str]) -> list[str]:
        return [THOUSANDS.sub("", text).lower() for text in texts]

    said = {"P": words([task]), "U": words(users), "A": words(actions), "M": words(previous), "E": set().union(*sets)}
    paired = {"P": pairs([task]), "U": pairs(users), "A": pairs(actions), "M": pairs(previous), "E": pairs(outputs)}
    first: dict[str, str] = {}
    for who, text in [("P", task), *spoken]:
        for word in tokens(text):
            first.setdefault(word, who)
    # Passages are normalised one by one; joined again they are the output.
    outputs_low = ["".join(low([passage for at, passage in passages if at == number])) for number in range(len(outputs))]
    lower = {"P": low([task]), "U": low(users), "A": low(actions), "M": low(previous), "E": outputs_low}
    waiting = {"E": list(outputs_low), "U": list(lower["U"]), "A": list(lower["A"])}
    order = [("P", lower["P"][0]), *((who, waiting[who].pop(0)) for who, _ in spoken)]
    records = [text.lstrip()[:1] in ("{", "[") for text in outputs]
    places = list(low([passage for _, passage in passages]))
    of_task = windows(lower["P"][0], 300)

    def follows(at: int) -> bool:
        return at + 1 < len(places) and passages[at + 1][0] == passages[at][0]

    neighbours = [places[at] + (places[at + 1] if follows(at) else "") for at in range(len(places))]
    recorded = [neighbours[at] for at in range(len(places)) if records[passages[at][0]]]

    def by_name(value: Value) -> Value:
        """The value as who says it first is found: a path by its last part."""
        last = value.needle.rstrip("/").rpartition("/")[2]
        named = "/" in value.needle and len(value.ways) == 1 and len(last) >= 4 and last != value.needle
        return Value(last, last, ((last,),), value.is_number, value.is_weak) if named else value

    def is_field(value: Value) -> bool:
        needle = re.escape(value.needle)
        short = value.needle.isdigit() and len(value.needle) <= 3
        fields = [text for text, record in zip(outputs_low, records, strict=True) if record]
        return not short and any(re.search(rf'(?<=[": \[]){needle}(?=[",}}\]])', "\0" + text) for text in fields)

    talk_words = said["U"] | said["A"]
    both = len(said["E"] & talk_words) / (min(len(said["E"]), len(talk_words)) or 1)
    fits = float(bool(said["E"])) if len(talk_words) < 8 else min(1.0, both / 0.2)
    found = []
    for entry in entries:
        text = bare(entry)
        stream = tokens(text)
        distinct = list(dict.fromkeys(stream))
        total = sum(idf(word) for word in distinct) or 1.0

        def share(held: set[str], distinct=distinct, total=total) -> float:
            return sum(idf(word) for word in distinct if word in held) / total

        def weighed(held: set[str], distinct=distinct) -> float:
            return sum(spread(word) for word in distinct if word in held) / (sum(map(spread, distinct)) or 1.0)

        values = values_of(text)
        count = len(values) or 1
        says = {role: [holds(by_name(value), "\0".join(texts)) for value in values] for role, texts in lower.items()}
        env = [e or m for e, m in zip(says["E"], says["M"], strict=True)]
        told = [p or u for p, u in zip(says["P"], says["U"], strict=True)]
        speakers = [next((who for who, said_by in order if holds(by_name(value), said_by)), None) for value in values]
        adjacent = list(pairwise(stream))
        shown = [word.lower() for word in WORD.findall(text)]
        spaced = f" {' '.join(shown)} "
        covers = [share(set(tokens(unit))) for unit in previous]
        ranked = sorted(range(len(previous)), key=lambda at, covers=covers: -covers[at])
        # The two units that cover most of it, the first ones of equals, and at least half.
        near = [at for at in ranked[:2] if covers[at] >= 0.5]
        alike = [2 * subsequence(text, previous[at]) / (len(text) + len(previous[at])) for at in near]
        units = [set(tokens(previous[at])) for at in ranked[:4] if covers[at] > 0]
        first_word = text.split(maxsplit=1)[0].strip("`*_:,.()\"'").lower() if text.split() else ""
        talk = [
            (
                place(by_name(value).needle, of_task),
                next((at for at, said_by in enumerate(lower["U"]) if holds(by_name(value), said_by)), -1),
            )
            for value in values
        ]
        bound = sum(
            ((a[1] >= 0 and a[1] == b[1]) or (a[0] >= 0 and b[0] >= 0 and abs(a[0] - b[0]) <= 1))
            and not any(holds(left, window) and holds(right, window) for window in recorded)
            for (left, a), (right, b) in list(zip(zip(values, talk, strict=True), zip(values[1:], talk[1:], strict=True), strict=False))[
                :10
            ]
        )
        in_window = max((sum(holds(value, window) for value in values) for window in neighbours), default=0)
        others = [value for value, who in zip(values, speakers, strict=True) if who not in {"A", "U"} or is_field(value)]
        near_by = max((sum(holds(value, window) for value in others) for window in neighbours), default=0)
        in_unit = max((sum(holds(value, unit) for value in values) for unit in lower["M"]), default=0)
        single = [len(value.ways) == 1 for value in values]
        counts = [
            0 if value.is_weak else 2 if re.fullmatch(r"\S*[\d_/.]\S*", value.needle) and not value.is_number else 1 for value in values
        ]
        unheld = sum(of for of, held in zip(counts, env, strict=True) if not held)
        found.append(
            {
                "novel_pass": max((share(one - said["P"] - said["U"]) for one in sets), default=0.0),
                "env_only": max((share(one - said["P"] - said["U"] - said["A"]) for one in sets), default=0.0),
                "env_mass": math.log1p(sum(spread(word) for word in distinct if first.get(word) == "E")),
                "new_agent": weighed({word for word, who in first.items() if who == "A" and word not in said["M"]}),
                "new_user": weighed({word for word, who in first.items() if who == "U" and word not in said["M"]}),
                "bg_prev": sum(pair in paired["M"] for pair in adjacent) / (len(adjacent) or 1),
                "bg_task": sum(pair in paired["P"] for pair in adjacent) / (len(adjacent) or 1),
                "bg_env": sum(pair in paired["E"] - paired["P"] - paired["U"] - paired["A"] for pair in adjacent) / (len(adjacent) or 1),
                "val2_env": sum(e and not t for e, t in zip(env, told, strict=True)) / count,
                "val2_orph": sum(not e and not t for e, t in zip(env, told, strict=True)) / count,
                "val_cooc": max(in_window, in_unit) / count,
                "val_near": math.log1p(min(near_by, 5)) if all(single) else None,
                "val_unit": in_unit / count,
                "val_task": sum(of for of, who in zip(counts, speakers, strict=True) if who == "P") / (sum(counts) or 1),
                "rec_id": min(
                    3,
                    sum(
                        is_field(value)
                        and (
                            "_" in value.needle
                            or bool(len(value.needle) >= 4 and re.search("[0-9]", value.needle) and re.search("[a-z]", value.needle))
                        )
                        for value, one in zip(values, single, strict=True)
                        if one
                    ),
                ),
                "unheld": unheld / sum(counts) if unheld >= 2 else 0.0,
                "told_pairs": min(3, bound) if all(single) else None,
                "field_share": weighed(agreeing(stream, outputs)),
                "out_fits": fits,
                "out_codes": math.log1p(sum(of == 2 and not out for of, out in zip(counts, says["E"], strict=True)))
                if any(map(str.strip, previous))
                else 0.0,
                "prev_stretch": math.log1p(max((best_stretch(stream, unit, spread, 1.0) for unit in units), default=0.0)),
                "prev_strict": math.log1p(max((best_stretch(stream, unit, spread, 2.0) for unit in units), default=0.0)),
                "prev_dice": max((2 * len(unit & set(stream)) / (len(unit) + len(distinct)) for unit in units), default=0.0),
                "prev_covered": max((len(unit & set(stream)) / len(unit) for unit in units), default=0.0),
                "carried": max(alike, default=0.0) > 0.85,
                "lead": float(text.rstrip().endswith(":")),
                "obs": float(
                    bool(OBSERVATIONS & set(shown))
                    or " is already " in spaced
                    or any(a in {"was", "were"} and b.endswith("ed") for a, b in pairwise(shown))
                ),
                "modal": float(
                    bool(MODALS & set(shown))
                    or any(f" {phrase} " in spaced for phrase in ("need to", "needs to", "plan to", "plans to", "ask to", "instead of"))
                ),
                "imper": float(first_word in IMPERATIVES),
            }
        )
    return found
