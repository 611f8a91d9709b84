"""The hand-written kernels of tests/gpu compile, and their structs are those that the runtime fills in."""

from __future__ import annotations

import re

import pytest

from pkc.codegen.artifact import Artifact, Base, Epochs, HeapStride, Scalar, TensorMaps
from pkc.codegen.cubin import kernel_facts
from tests.gpu import smoke_kernels

SOURCES = {"pass_on": smoke_kernels._PASS_ON, "collect": smoke_kernels._COLLECT, "stall": smoke_kernels._STALL}


@pytest.mark.parametrize(
    "artifact",
    [smoke_kernels.pass_on(), smoke_kernels.collect(private=True), smoke_kernels.stall()],
    ids=lambda a: a.name,
)
def test_fields_follow_each_other_as_in_the_source(artifact: Artifact) -> None:
    assert kernel_facts(artifact.cubin)[artifact.name].frame == 0
    (members,) = re.findall(r"struct alignas\(128\) Args \{(.*?)\n?\};\n", SOURCES[artifact.name], re.DOTALL)
    declared = [tuple(member.rsplit(None, 1)) for member in members.split(";") if member.strip()]
    expected: list[tuple[str, str]] = []
    for field in artifact.fields:
        if isinstance(field, TensorMaps):
            expected.append(("TensorMap", f"{field.field}[2]"))
        elif isinstance(field, Base | HeapStride | Epochs):
            expected.append(("u64", field.field))
        else:
            expected.append(("float" if isinstance(field, Scalar) and field.dtype == "f32" else "int", field.field))
    assert [(kind.strip(), name) for kind, name in declared] == expected
