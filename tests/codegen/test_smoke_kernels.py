"""The hand-written kernels of tests/gpu compile, and their structs are those that the runtime fills in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pkc.codegen.artifact import Artifact, Base, Epochs, HeapStride, Scalar, TensorMaps
from pkc.codegen.cubin import kernel_facts
from pkc.codegen.nvrtc import compile_cuda
from pkc.runtime.kernel_parameters import layout
from tests.gpu import smoke_kernels

SOURCES = {"pass_on": smoke_kernels._PASS_ON, "collect": smoke_kernels._COLLECT, "stall": smoke_kernels._STALL}


ARTIFACTS: dict[str, Callable[[], Artifact]] = {
    "pass_on": smoke_kernels.pass_on,
    "collect": lambda: smoke_kernels.collect(private=True),
    "stall": smoke_kernels.stall,
}


@pytest.mark.parametrize("name", SOURCES)
def test_fields_follow_each_other_as_in_the_source(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path))
    artifact = ARTIFACTS[name]()
    assert kernel_facts(artifact.cubin)[name].frame == 0
    (members,) = re.findall(r"struct alignas\(128\) Args \{(.*?)\n?\};\n", SOURCES[name], re.DOTALL)
    declared = [tuple(member.rsplit(None, 1)) for member in members.split(";") if member.strip()]
    expected: list[tuple[str, str]] = []
    for field in artifact.fields:
        if isinstance(field, TensorMaps):
            expected.append(("TensorMap", f"{field.field}[2]"))
        elif isinstance(field, Base | HeapStride | Epochs):
            expected.append(("u64", field.field))
        else:
            expected.append(("float" if isinstance(field, Scalar) and field.dtype == "f32" else "int", field.field))
    assert [(kind.strip(), field) for kind, field in declared] == expected
    ptx = compile_cuda(SOURCES[name], "sm_90a", name).ptx
    (size,) = re.findall(r"\.param \.align 128 \.b8 \w+\[(\d+)\]", ptx)
    assert int(size) == layout(artifact.fields)[1]
