"""Calls like those before: whatever they were, a launch gets what it would get if all was checked anew."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pkc.codegen.artifact import ArrayParameter, Base, TensorMaps
from pkc.runtime.kernel_parameters import layout
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.plans import Plans
from tests.runtime.fake import FIRST_POINTER, Api, Device, Launch, Tensor, driver
from tests.runtime.test_launch import MIB, REDUCE, STRIDE

SUMS = replace(
    REDUCE,
    arrays=(
        *(replace(array, local=array.name == "C") for array in REDUCE.arrays),
        ArrayParameter("X", "bf16", ("M", "K"), "private", None, False, written=True),
    ),
    fields=(*REDUCE.fields, TensorMaps("X_map", "X", (64, 16), 128, None), Base("X_base", "X"), Base("C_base", "C")),
)
CALLS = 16


def _private(mesh: Mesh, shape: tuple[int, int], number: int) -> Any:
    """Tensors, or one array of the mesh, by itself or for each rank."""
    first = FIRST_POINTER + MIB * (number + random.randrange(3)) + 64 * random.randrange(2)
    kind = random.randrange(3)
    if kind == 0:
        return [Tensor(shape, device=Device(rank.device), address=first + 64 * MIB * rank.rank) for rank in mesh.local]
    array = mesh.empty(shape, "bf16")
    return array if kind == 1 else [array] * len(mesh.local)


def _told(launch: Launch, api: Api) -> tuple[object, ...]:
    """A launch with what its maps say."""
    struct, maps = bytearray(launch.struct), list[Any]()
    for field, offset in zip(SUMS.fields, layout(SUMS.fields)[0], strict=True):
        for at in (offset, offset + 128) if isinstance(field, TensorMaps) else ():
            (number,) = {*struct[at : at + 128]}
            maps.append(api.encoded[number - 1])
            struct[at : at + 128] = bytes(128)
    return launch.context, launch.stream, bytes(struct), maps


@pytest.mark.parametrize("seed", range(6))
def test_calls_in_any_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random.seed(seed)
    made, api = driver(monkeypatch, gpus=2)
    mesh = Mesh.virtual(2, driver=made) if seed % 2 else Mesh.single_process(driver=made)
    api.struct_bytes = layout(SUMS.fields)[1]
    kernel = LoadedKernel(SUMS, mesh)
    for _ in range(CALLS):
        m, k = random.choice([(40, 72), (1, 8)])
        place = STRIDE + MIB * random.randrange(3)
        shards = [Tensor((-(-m // 2), 64), "torch.float32", Device(rank.device), address=place) for rank in mesh.local]
        arguments = {
            "A": _private(mesh, (m, k), 1),
            "X": _private(mesh, (m, k), 9),
            "C": random.choice([shards, mesh.empty((m, 64), "f32", "shard", 0)]),
            "scale": 0.5,
            "count": 1,
        }
        names = random.sample([*arguments], len(arguments)) if seed > 3 else [*arguments]
        given = {name: arguments[name] for name in names}
        kernel(given)
        kept = kernel._plans, kernel._form
        kernel._plans, kernel._form = Plans(), None
        kernel(given)
        kernel._plans, kernel._form = kept
        known, anew = ([_told(launch, api) for launch in some] for some in (api.launches[-4:-2], api.launches[-2:]))
        assert known == anew
    assert len(api.encoded) < 255, "the fake driver's maps are numbers of one byte"
