"""The C++ loader fills in a launch as the Python runtime does: both on fake drivers that answer alike."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pkc import cache
from pkc.codegen.artifact import Base, Field, SignalParameter, TensorMaps
from pkc.runtime.exported import pack
from pkc.runtime.kernel_parameters import layout
from pkc.runtime.tensor_map import MAP_BYTES
from pkc.version import VERSION
from tests.native import build_program
from tests.runtime.fake import FIRST_POINTER, Api
from tests.runtime.test_launch import REDUCE, reduce_on

HERE = Path(__file__).parent / "native"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("native") / "plays"
    build_program(list(HERE.glob("*.cpp")), program)
    return program


@pytest.fixture(scope="module")
def kernel(program: Path) -> Path:
    kernel = program.with_name("kernel.pkx")
    kernel.write_bytes(pack(REDUCE))
    return kernel


@pytest.fixture(scope="module")
def printed(program: Path, kernel: Path) -> list[Any]:
    return play(program, "launch", kernel, layout(REDUCE.fields)[1], FIRST_POINTER)


def play(program: Path, *given: object) -> list[Any]:
    """What the program prints, a JSON value on each line."""
    ran = subprocess.run([program, *map(str, given)], check=True, capture_output=True, text=True, cwd=program.parent)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_launch_gets_what_it_gets_from_python(printed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    assert printed[:2] == [{"code": "machine code"}, {"kernel": "gemm_rs"}]
    same_launches(printed, api, REDUCE.fields)


def test_rows_of_padded_scratch_memory_begin_where_python_says(
    program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rows of 40 elements of 16 bits have room for 48."""
    *arrays, fetched = REDUCE.arrays
    arrays.append(replace(fetched, dims=("K", "M"), padded=True))
    maps = TensorMaps("fetched_map", "fetched", (32, 16), 64, None)
    fields = tuple(maps if isinstance(field, Base) and field.array == "fetched" else field for field in REDUCE.fields)
    padded = replace(REDUCE, arrays=tuple(arrays), fields=fields)
    kernel, arguments, api = reduce_on(monkeypatch, of=padded)
    kernel(arguments)
    assert [each["strides"] for each in api.encoded if each["extents"] == [40, 72]][:1] == [[96]]
    path = tmp_path / "kernel.pkx"
    path.write_bytes(pack(padded))
    same_launches(play(program, "launch", path, layout(fields)[1], FIRST_POINTER), api, fields)


def test_joined_dimensions_are_one_of_the_map(program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows of 20 pairs are rows of 40 elements."""
    *arrays, fetched = REDUCE.arrays
    arrays.append(replace(fetched, dims=("K", 20, 2)))
    maps = TensorMaps("fetched_map", "fetched", (32, 16), 64, None, joined=True)
    fields = tuple(maps if isinstance(field, Base) and field.array == "fetched" else field for field in REDUCE.fields)
    joined = replace(REDUCE, arrays=tuple(arrays), fields=fields)
    kernel, arguments, api = reduce_on(monkeypatch, of=joined)
    kernel(arguments)
    assert [each["strides"] for each in api.encoded if each["extents"] == [40, 72]][:1] == [[80]]
    path = tmp_path / "kernel.pkx"
    path.write_bytes(pack(joined))
    same_launches(play(program, "launch", path, layout(fields)[1], FIRST_POINTER), api, fields)


def same_launches(printed: list[Any], api: Api, fields: Sequence[Field]) -> None:
    """What the loader has launched is what Python has."""
    encoded = [found for found in printed if "extents" in found]
    found = [{**launch, "struct": bytes.fromhex(launch["struct"])} for launch in printed if "function" in launch]
    streams = {launch.pop("stream") for launch in found}
    assert len(streams) == 3
    expected = [{name: value for name, value in vars(launch).items() if name != "stream"} for launch in api.launches]
    ours = [told(launch, api.encoded, fields) for launch in expected]
    assert [told(launch, encoded, fields) for launch in found] == ours


def told(launch: dict[str, Any], encoded: list[dict[str, Any]], fields: Sequence[Field]) -> dict[str, Any]:
    """A launch with what its maps say. In the struct a map is the number of the one that was encoded, repeated: the
    loader encodes each, and Python lets those of other ranks have another address."""
    struct, maps = bytearray(launch["struct"]), list[dict[str, Any]]()
    for field, offset in zip(fields, layout(fields)[0], strict=True):
        for at in (offset, offset + MAP_BYTES) if isinstance(field, TensorMaps) else ():
            (number,) = {*struct[at : at + MAP_BYTES]}
            maps.append(encoded[number - 1])
            struct[at : at + MAP_BYTES] = bytes(MAP_BYTES)
    return {**launch, "struct": bytes(struct), "maps": maps}


def test_what_does_not_fit_is_said(printed: list[Any]) -> None:
    assert printed[-3:] == [
        "gemm_rs needs the number scale",
        "dimension 1 of C is 32, not 64",
        "gemm_rs needs the array C",
    ]


def test_files_of_other_versions_and_damaged_ones_are_refused(program: Path) -> None:
    right = pack(REDUCE)
    contents = {
        "right": right,
        "other": b"machine code",
        "version": right.replace(VERSION.encode(), b"0.0.0", 1),
        "short": right[:-1],
        "longer": right + b"?",
        "changed": right[:-1] + b"?",
        "cut": right[: right.index(b"\n") + 8],
    }
    for name, content in contents.items():
        program.with_name(name).write_bytes(content)
    found = [said for said in play(program, "load", *contents, "missing") if isinstance(said, str)]
    assert found == [
        "done",
        "other was not written by `pkc compile --emit artifact`",
        f"version is not of version {VERSION}",
        *[f"{name} is damaged" for name in ("short", "longer", "changed", "cut")],
        "missing cannot be read",
    ]


def test_contents_of_any_length_have_the_digest_that_python_computes(program: Path) -> None:
    """A block of SHA-256 has 64 bytes."""
    contents = {f"of-{size}": pack(replace(REDUCE, cubin=b"c" * size)) for size in range(1, 65)}
    for name, content in contents.items():
        program.with_name(name).write_bytes(content)
    assert play(program, "load", *contents).count("done") == 64


@pytest.mark.parametrize("call", ["cuLibraryGetKernel", "cuFuncLoad"])
def test_a_kernel_that_cannot_be_loaded_leaves_no_machine_code(program: Path, kernel: Path, call: str) -> None:
    said, libraries = play(program, "load_failing", call, 0, kernel)[-2:]
    assert said == f"{call} fails: what the driver says"
    assert libraries == 0


@pytest.mark.parametrize("call", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_heap_that_could_not_grow_grows_later(program: Path, call: str) -> None:
    """The call fails for the second of three ranks."""
    failed, left, *later, closed = play(program, "grow_failing", call, 1)
    assert failed == f"{call} fails: what the driver says"
    assert left == [0, 0], "handles and mappings"
    assert later == ["done", [0, 3], "done", [0, 6]]
    assert closed == 0


WRONG = {
    "pkc_mesh_open": [
        "a mesh needs a GPU",
        "a mesh needs a GPU",
        "devices is NULL",
        "devices has -1 elements",
        "mesh is NULL",
    ],
    "pkc_mesh_allocate": ["mesh is NULL", "offset is NULL"],
    "pkc_mesh_address": [0, 0, 0],
    "pkc_mesh_synchronize": ["mesh is NULL"],
    "pkc_kernel_load": ["mesh is NULL", "path is NULL", "kernel is NULL"],
    "pkc_kernel_bytes": [
        "kernel is NULL",
        "name is NULL",
        "the shape of A is NULL",
        "the shape of A has -2 elements",
        "bytes is NULL",
    ],
    "pkc_kernel_launch": [
        "kernel is NULL",
        "arrays is NULL",
        "arrays has -1 elements",
        "numbers is NULL",
        "the name of a number is NULL",
        "the name of an array is NULL",
        "the shape of A is NULL",
        "the shape of A has -1 elements",
        "A has no addresses",
    ],
}


@pytest.mark.parametrize("call", WRONG)
def test_calls_without_what_they_need_fail(program: Path, kernel: Path, call: str) -> None:
    said = play(program, "misuse", call, kernel)
    assert [each for each in said if not isinstance(each, dict)] == WRONG[call]


def of_array(**changed: Any) -> bytes:
    """A file of a kernel that differs in its first array, A."""
    return pack(replace(REDUCE, arrays=(replace(REDUCE.arrays[0], **changed), *REDUCE.arrays[1:])))


def of_signal(*dims: Any) -> bytes:
    return pack(replace(REDUCE, signals=(SignalParameter("entered", dims),)))


def of_field(field: Field) -> bytes:
    return pack(replace(REDUCE, fields=(*REDUCE.fields, field)))


def of_maps(box: Sequence[int], split: int | None, array: str = "A") -> bytes:
    return of_field(TensorMaps("maps", array, tuple(box), 128, split))


MAPS = TensorMaps("maps", "A", (64, 16), 128, None)


def of_header(text: bytes) -> bytes:
    content = struct.pack("<Q", len(text)) + text
    return f"pkc artifact of {VERSION}\n{cache.key(content)}".encode() + content


OUT_OF_BOUNDS = [
    (of_array(shard=2), "A has no dimension 2"),
    (of_array(shard=-1), "A has no dimension -1"),
    (of_array(dims=("M", 0)), "a dimension of A is 0"),
    (of_array(dims=("M", 1 << 31)), "a dimension of A is 2147483648"),
    (of_array(dims=("M", 1.5)), "a dimension of A is 1.5"),
    (of_array(dims=()), "A has no dimensions to move boxes along"),
    (of_array(dtype="f7"), "there are no elements of type f7"),
    (of_array(layout="lost"), "A has the layout lost"),
    (of_array(name="C"), "there are two of C"),
    (of_array(name="entered"), "there are two of entered"),
    (of_maps((64, 16, 1), 2), "A has no dimension 2"),
    (of_maps((64, 16, 1), -1), "A has no dimension -1"),
    (of_maps((0, 16), None), "A has the box [0,16]"),
    (of_maps((64, 257), None), "A has the box [64,257]"),
    (of_maps((64, 16), None, "X"), "there is no array X"),
    (of_maps((64,), None, "entered"), "there is no array entered"),
    (of_field(replace(MAPS, joined=2)), "A joins 2"),
    (of_field(Base("base", "X")), 'there is no "X"'),
    (of_signal(("M", 0)), 'entered counts ["M",0]'),
    (of_signal(("M",)), 'entered counts ["M"]'),
    (of_signal(-1), "a dimension of entered is -1"),
    (pack(replace(REDUCE, cluster=0)), "cluster is 0"),
    (pack(replace(REDUCE, threads=-1)), "threads is -1"),
    (of_header(b"{}"), "[json.exception.out_of_range.403] key 'name' not found"),
]


def test_headers_that_lead_out_of_bounds_are_refused(program: Path) -> None:
    names = [f"wrong-{number}" for number in range(len(OUT_OF_BOUNDS))]
    for name, (content, _) in zip(names, OUT_OF_BOUNDS, strict=True):
        program.with_name(name).write_bytes(content)
    found = [said for said in play(program, "load", *names) if isinstance(said, str)]
    told = [problem for _, problem in OUT_OF_BOUNDS]
    assert found == [f"{name} has a wrong header: {problem}" for name, problem in zip(names, told, strict=True)]


def test_numbers_and_places_that_are_none_are_refused(program: Path) -> None:
    deep = replace(REDUCE.arrays[3], dims=("N", "N", "N"))
    program.with_name("deep").write_bytes(pack(replace(REDUCE, arrays=(*REDUCE.arrays[:3], deep))))
    found = [said for said in play(program, "out_of_range", "deep") if not isinstance(said, dict)]
    assert found == [
        *[f"N of gemm_rs is {n}; it must be from 1 to 2147483647" for n in ("0", "-1", "0.5", "3e+09", "nan")],
        *[f"count of gemm_rs is {count}, which is not of type i32" for count in ("0.5", "3e+09", "-3e+09")],
        *[f"M of A is {m}; it must be from 1 to 2147483647" for m in (0, 1 << 32)],
        *["C ends behind what the symmetric heap has allocated"] * 2,
        "fetched is larger than any memory",
        "done",
        1,
        "the symmetric heap would be larger than a GPU's memory",
    ]
