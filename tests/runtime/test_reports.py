"""Reports made by hand of kernels that have given up: as a diagnostic, and through a launch."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkc.codegen.artifact import Alarm, ArrayParameter, Base, SignalParameter, Wait, Waits
from pkc.diagnostics import PkcError
from pkc.runtime import faults, reports
from pkc.runtime.enqueue import counters_along
from pkc.runtime.kernel_parameters import layout
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import SMS, Api, Tensor, driver
from tests.runtime.test_launch import SMALL

SOURCE = """\
kernel gemm_rs(C: f32[M]):
    for m in tasks(blocks(M, 128)):
        C[m] += 1
"""


@pytest.fixture
def waits(tmp_path: Path) -> Waits:
    path = tmp_path / "k.pk"
    path.write_text(SOURCE, encoding="utf-8")
    points = (
        Wait("storer", "entered", "raised", str(path), 2, 5),
        Wait("consumer", "cast", "free", str(path), 3, 9),
        Wait("communicator", "C.arrived", "raised", str(path), 3, 9),
    )
    return Waits("reports", "report_ctas", 12, points)


def words(entries: Mapping[tuple[int, int], tuple[int, ...]]) -> reports.Words:
    made = np.zeros((132, 12, 8), np.uint32)
    for (cta, warp), entry in entries.items():
        made[cta, warp, : len(entry)] = [n % 2**32 for n in entry]
    return made.view(np.int32)


def counter_at(rank: int, name: str, low: int) -> tuple[int, ...]:
    assert (rank, name, low) in ((1, "entered", 2**32 - 16), (0, "C.arrived", 64))
    return (0,) if name == "entered" else (3, 5)


def test_nobody_has_given_up(waits: Waits) -> None:
    assert reports.read(waits, {0: words({})}, counter_at) == []


def test_who_waits_for_what(waits: Waits, tmp_path: Path) -> None:
    late = {(17, 11): (1, 0, -1, 527, 528, -16)}
    stuck = {(cta, warp): (2, 1, 170 + cta, 0, 0, 0) for cta in (17, 3, 90) for warp in range(8)}
    other = {(4, 8): (2, 2, 9, 3, 4, 64), (4, 9): (2, 2, 9, 3, 4, 64)}
    found = reports.read(waits, {0: words(other), 1: words(late | stuck)}, counter_at)
    text = str(PkcError(reports.diagnose("gemm_rs", found, 2.5))).replace(str(tmp_path), "")
    assert (
        text
        == """\
error[PK837]: `gemm_rs` has given up: rank 1 waits for `entered` in vain
 --> /k.pk:2:5
  |
2 |     for m in tasks(blocks(M, 128)):
  |     ^^^ waited for here
  = note: rank 1, storer of CTA 17: waits for `entered`[0] >= 528, sees 527 (/k.pk:2)
          rank 0, communicator of CTA 4, task 9: waits for `C.arrived`[3, 5] >= 4, sees 3 (/k.pk:3)
          rank 1, consumer of CTA 3 and 2 more, task 173: waits for room in `cast` (/k.pk:3)
  = help: a wait may take 2.5 s (PKC_WAIT_LIMIT); close the mesh and make another before the next launch"""
    )


def test_who_has_not_launched_is_named() -> None:
    assert reports.missing_launches({0: 5, 1: 5}) == []
    assert reports.missing_launches({0: 5, 1: 1, 2: 4, 3: 5}) == [
        "rank 1 has launched this kernel 1 time, others 5 times",
        "rank 2 has launched this kernel 4 times, others 5 times",
    ]


def test_who_is_absent_comes_first(waits: Waits) -> None:
    found = reports.read(waits, {0: words({(0, 0): (1, 1, 0, 0, 0, 0)})}, counter_at)
    note = reports.diagnose("k", found, 1, ["the process of rank 1 has ended"]).waits.splitlines()
    assert [line.strip().split(":")[0] for line in note] == [
        "the process of rank 1 has ended",
        "rank 0, consumer of CTA 0, task 0",
    ]


def test_many_waits_are_shortened(waits: Waits) -> None:
    written = {rank: words({(0, 0): (2, 1, rank, 0, 0, 0)}) for rank in range(reports.MOST_LINES + 7)}
    note = reports.diagnose("k", reports.read(waits, written, counter_at), 1).waits.splitlines()
    assert len(note) == reports.MOST_LINES + 1
    assert note[-1].strip() == "and 7 more"


class Memory(Api):
    """A driver that also has the reports of a kernel: 32 bytes for each warp, the same on each rank."""

    written = b""

    def _cuMemcpyDtoH(self, target: int, address: int, count: int) -> None:
        ctypes.memmove(target, self.written.ljust(count, b"\0"), count)


def debugged(monkeypatch: pytest.MonkeyPatch, waits: Waits) -> tuple[LoadedKernel, dict[str, Any], Memory]:
    artifact = replace(
        SMALL,
        arrays=(*SMALL.arrays, ArrayParameter("reports", "i32", ("report_ctas", 12, 8), "private", None, True)),
        signals=(SignalParameter("entered", (1,)), SignalParameter("C.arrived", (7, ("M", 2)))),
        fields=(*SMALL.fields, Base("reports_base", "reports"), Alarm("alarm")),
        waits=waits,
    )
    made, _ = driver(monkeypatch, gpus=1)
    made.api = api = Memory(gpus=1)
    api.struct_bytes = layout(artifact.fields)[1]
    kernel = LoadedKernel(artifact, Mesh.single_process(driver=made))
    return kernel, {"A": [Tensor((4, 8))], "s": 1.0, "n": 1}, api


def test_a_launch_has_the_alarm_and_a_clean_place_for_reports(monkeypatch: pytest.MonkeyPatch, waits: Waits) -> None:
    kernel, arguments, api = debugged(monkeypatch, waits)
    kernel(arguments)
    kernel.mesh.synchronize()
    at = layout(kernel.artifact.fields)[0][-1]
    alarm = int.from_bytes(api.launches[0].struct[at : at + 8], "little")
    assert ctypes.string_at(alarm, 8) == struct.pack("<II", 0, 30_000)
    assert [size for address, size in api.registered.items() if address <= alarm < address + size] == [4096]
    offset = kernel.scratch("reports", {"M": 4, "K": 8})
    reports = kernel.mesh.heap.address(0, offset)
    assert any(first <= reports and reports + SMS * 12 * 32 <= first + count for first, count in api.zeroed)
    # They are the same for other sizes, and are told apart by the addresses of counters.
    kernel(arguments | {"A": [Tensor((4, 16))]})
    assert kernel.scratch("reports", {"M": 4, "K": 16}) == offset


def test_which_sizes_have_given_up(monkeypatch: pytest.MonkeyPatch, waits: Waits) -> None:
    kernel, arguments, api = debugged(monkeypatch, waits)
    for rows in (4, 10):
        kernel(arguments | {"A": [Tensor((rows, 8))]})
    for rows in (4, 10):
        first = kernel.mesh.heap.address(0, kernel.scratch("C.arrived", {"M": rows, "K": 8}))
        index = 3 * counters_along(("M", 2), {"M": rows, "ranks": 1}) + 1
        api.written = words({(0, 0): (1, 2, 0, 1, 2, first + 4 * index)}).tobytes()
        found = kernel.memory.reported(waits, [], limit=1.0)
        assert found is not None
        assert "waits for `C.arrived`[3, 1] >= 2, sees 1" in found.waits


@pytest.mark.parametrize("call", ["synchronize", "launch"])
def test_who_has_given_up_is_asked_when_the_alarm_is_raised(
    monkeypatch: pytest.MonkeyPatch, waits: Waits, call: str
) -> None:
    kernel, arguments, api = debugged(monkeypatch, waits)
    kernel(arguments)
    kernel.mesh.synchronize()
    assert "cuMemcpyDtoH" not in api.names()
    low = (kernel.mesh.heap.address(0, kernel.scratch("C.arrived", {"M": 4, "K": 8})) + 4 * (2 * 3 + 1)) % 2**32
    api.written = np.array([1, 2, 9, 3, 4, low, 0, 0], np.uint32).tobytes()
    kernel.mesh.alarm.raise_it()
    for _ in range(2):
        with pytest.raises(
            PkcError, match=r"communicator of CTA 0, task 9: waits for `C.arrived`\[2, 1\] >= 4, sees 3"
        ):
            kernel(arguments) if call == "launch" else kernel.mesh.synchronize()
    assert len(api.launches) == 1
    kernel.mesh.close()
    assert not api.registered


def test_a_fault_that_no_call_asks_for_is_raised_in_the_thread_that_launches(
    monkeypatch: pytest.MonkeyPatch, waits: Waits, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(faults, "UNASKED", 0.05)
    monkeypatch.setattr(faults, "PERIOD", 0.01)
    kernel, arguments, api = debugged(monkeypatch, waits)
    kernel(arguments)
    api.written = np.array([1, 0, 9, 3, 4, 0, 0, 0], np.uint32).tobytes()
    kernel.mesh.alarm.raise_it()
    with pytest.raises(PkcError, match="rank 0 waits for `entered` in vain"):
        for _ in range(1000):
            time.sleep(0.01)
    assert "rank 0 waits for `entered` in vain" in capsys.readouterr().err
