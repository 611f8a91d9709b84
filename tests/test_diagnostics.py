"""Kinds of diagnostics: dataclasses from the first one that is made."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from pkc.diagnostics import Diagnostic
from pkc.location import NOWHERE


class Plain(Diagnostic):
    code = "PK001"
    title = "`{name}` is wrong"
    help = "{hint}"
    name: str
    hint: str = ""


class Special(Plain):
    code = "PK002"
    count: int = 1


def test_a_kind_is_a_dataclass_when_it_is_used() -> None:
    assert "__dataclass_fields__" not in Special.__dict__
    made = Special(NOWHERE, "x", count=2)
    assert [field.name for field in fields(made)] == ["span", "also", "context", "tried", "name", "hint", "count"]
    assert str(made) == "error[PK002]: `x` is wrong"
    assert made == replace(made, hint="") == pickle.loads(pickle.dumps(made)) != Special(NOWHERE, "x")
    assert hash(made) == hash(Special(NOWHERE, "x", count=2))
    assert str(Plain(NOWHERE, "y", "do not")).endswith("= help: do not")
    with pytest.raises(FrozenInstanceError):
        made.name = "y"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        Plain(NOWHERE)  # pyright: ignore[reportCallIssue]
