"""The schedule: keys, the values they take, and the attribute they become.

What is written is checked without the IR, which takes long to import.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from pkc.diagnostics import PkcError
from pkc.frontend import tree
from pkc.frontend.check_errors import BadScheduleValue, UnknownScheduleKey
from pkc.location import NOWHERE, Span

if TYPE_CHECKING:
    from xdsl.dialects.builtin import DictionaryAttr
    from xdsl.ir import Attribute

Value: TypeAlias = int | bool | str

KEYS: dict[str, tuple[str, ...] | range | type[bool]] = {
    "overlap": ("none", "intra_sm", "inter_sm", "copy_engine"),
    "comm_sms": range(129),
    "stages": range(1, 33),
    "task_stages": range(1, 5),
    "consumers": range(1, 5),
    "order": ("natural", "local_first", "local_last", "ring"),
    "straddle": bool,
    "separate_loader": bool,
    "queue": bool,
    "transfer": ("push",),
    "deterministic": bool,
    "row": range(16, 65537),
    "cluster": range(1, 9),
    "all_reduce": ("one_shot", "two_shot"),
    "packets": bool,
    "write_ahead": bool,
    "aligned_copies": bool,
    "splits": bool,
}
"""What each key takes: one of some names, an integer of a range, or a boolean."""

_RENAMED = {
    "parts": "the key is `straddle` now: `straddle=true` lets blocks straddle shards",
    "loads": "the key is `separate_loader` now: `separate_loader=true` loads local operands in a separate loader",
}
"""Former keys, and what replaces them."""

_RENAMED_VALUES = {"own_first": "local_first", "own_last": "local_last"}

TILE = "tile_"
"""Followed by the name of a dimension: the size of its blocks, which replaces the sizes in the program."""

_TILES = range(2, 65537)
"""Not one: a block of one position is an integer, so the program would mean something else."""

SPLIT = "split_"
"""Followed by the name of a dimension: the number of splits of each sum along it."""

_SPLITS = range(1, 129)


def values_of(keywords: Iterable[tree.Keyword]) -> dict[str, Value]:
    """What a `schedule(...)` statement or a decorator gives. Raises `PkcError`."""
    result: dict[str, Value] = {}
    for keyword in keywords:
        value = keyword.value
        text = value.id if isinstance(value, tree.Name) else value.span.text
        plain = value.value if isinstance(value, tree.Number) else text
        result[keyword.name] = _checked(keyword.name, plain, keyword.span)
    return result


def values_in(options: Mapping[str, str]) -> dict[str, Value]:
    """What `--schedule key=value,...` gives. Raises `PkcError`."""
    return {key: _checked(key, _plain(text), NOWHERE) for key, text in options.items()}


def from_keywords(keywords: Iterable[tree.Keyword]) -> dict[str, Attribute]:
    """`values_of` as attributes."""
    return {key: _attribute(value) for key, value in values_of(keywords).items()}


def from_options(options: Mapping[str, str]) -> dict[str, Attribute]:
    """`values_in` as attributes."""
    return {key: _attribute(value) for key, value in values_in(options).items()}


def schedule_attr(entries: Mapping[str, Attribute]) -> DictionaryAttr:
    """Entries in the order of the table, tiles and splits behind them by name, so that equal schedules print alike."""
    from xdsl.dialects.builtin import DictionaryAttr

    known = [key for key in KEYS if key in entries]
    return DictionaryAttr({key: entries[key] for key in (*known, *sorted(set(entries) - set(known)))})


def tiles_of(entries: Mapping[str, Attribute]) -> dict[str, int]:
    """The positions of a block by dimension, where a schedule says them."""
    from xdsl.dialects.builtin import IntegerAttr

    found = ((key, value) for key, value in entries.items() if key.startswith(TILE))
    return {key.removeprefix(TILE): value.value.data for key, value in found if isinstance(value, IntegerAttr)}


def _plain(text: str) -> Value:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    # No key takes more digits, and Python refuses to read thousands of them.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def check_key(key: str, span: Span) -> None:
    """Refuse a key that no schedule has. Raises `PkcError`."""
    if key not in KEYS and not key.startswith((TILE, SPLIT)):
        known = f"keys are {', '.join((*KEYS, f'{TILE}DIMENSION', f'{SPLIT}DIMENSION'))}"
        closest = [f"did you mean `{name}`?" for name in difflib.get_close_matches(key, KEYS, n=1)]
        raise PkcError(UnknownScheduleKey(span, key, _RENAMED.get(key, " ".join([*closest, known]))))


def _attribute(value: Value) -> Attribute:
    from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i64

    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    return IntegerAttr(value, i64) if isinstance(value, int) else StringAttr(value)


def _checked(key: str, value: float | Value, span: Span) -> Value:
    check_key(key, span)
    allowed = _TILES if key.startswith(TILE) else _SPLITS if key.startswith(SPLIT) else KEYS[key]
    if allowed is bool:
        if isinstance(value, bool):
            return value
        raise PkcError(BadScheduleValue(span, key, str(value), "True or False"))
    if isinstance(allowed, range):
        if isinstance(value, int) and not isinstance(value, bool) and value in allowed:
            return value
        raise PkcError(
            BadScheduleValue(span, key, str(value), f"an integer from {allowed.start} to {allowed.stop - 1}")
        )
    assert isinstance(allowed, tuple)
    if value in allowed:
        return str(value)
    renamed = _RENAMED_VALUES.get(str(value))
    expected = f"`{renamed}` now, formerly `{value}`" if renamed in allowed else _one_of(str(value), allowed)
    raise PkcError(BadScheduleValue(span, key, str(value), expected))


def _one_of(value: str, allowed: tuple[str, ...]) -> str:
    """The values that there are, and the one that was probably meant."""
    closest = difflib.get_close_matches(value, allowed, n=1)
    return f"one of {', '.join(allowed)}" + (f"; did you mean `{closest[0]}`?" if closest else "")
