"""Kernels to call, on the fake driver, and the text of a call that is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

import pkc
from pkc.language import *
from pkc.runtime import default, tensor_map
from pkc.runtime import mesh as meshes
from pkc.runtime.driver import Driver
from tests.runtime.fake import FIRST_POINTER, Api, Device, Tensor

M, N = dims("M N")
ROWS = 64


@pkc.kernel
def scaled(X: bf16[M, N], Y: bf16[M, N], factor: f32, SIZE: const = 64):
    for m, n in tasks(blocks(M, ROWS), blocks(N, SIZE)):
        Y[m, n] = cast(X[m, n] * factor, bf16)


@pkc.kernel
def added(X: bf16[M, N], Y: bf16[M, N], Z: bf16[M, N]):
    for m, n in tasks(blocks(M, ROWS), blocks(N, 64)):
        Z[m, n] = X[m, n] + Y[m, n]


@pkc.kernel
def numbered(X: bf16[M], Y: bf16[M], stream: i32):
    for m in tasks(blocks(M, 64)):
        Y[m] = X[m] + cast(cast(stream, f32), bf16)


@pkc.kernel
def gathered(X: bf16[M, N].shard(0), Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n]


@pkc.kernel
def kept(X: bf16[M, N].shard(0), Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64, of=rank), blocks(N, 64)):
        Y[m, n] = X[m, n]


@pkc.kernel
def summed(X: bf16[M, N], Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] += X[m, n]


def use(monkeypatch: pytest.MonkeyPatch, api: Api) -> None:
    driver = Driver(api)
    monkeypatch.setattr(tensor_map, "_encode_tiled", lambda: api.encode)
    monkeypatch.setattr(tensor_map, "replace_address", lambda: api.replace)
    monkeypatch.setattr(meshes, "load", lambda: driver)
    monkeypatch.setattr(default, "_made", {})


def tensor(*shape: int, device: int = 0, at: int = 0) -> Tensor:
    return Tensor(shape, device=Device(device), address=FIRST_POINTER + (at << 20))


def told(call: Callable[[], object]) -> str:
    with pytest.raises(pkc.PkcError) as raised:
        call()
    assert raised.value.__cause__ is None
    return f"{raised.value}\n"


def here(call: str) -> str:
    """The lines of a diagnostic that point at a call in the file of the test."""
    file = inspect.stack()[1].filename
    lines = Path(file).read_text(encoding="utf-8").split("\n")
    number, line = next((number, line) for number, line in enumerate(lines, 1) if f"told(lambda: {call})" in line)
    gutter, column = " " * len(str(number)), line.index(f"lambda: {call})") + len("lambda: ")
    return (
        f"{gutter}--> {file}:{number}:{column + 1}\n{gutter} |\n{number} | {line}\n"
        f"{gutter} | {' ' * column}{'^' * len(call)}"
    )
