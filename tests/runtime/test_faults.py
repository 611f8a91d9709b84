"""Faults between real processes, on the fake driver: the test raises the alarm, as a thread of a kernel would."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
import uuid
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from pkc.codegen.artifact import ArrayParameter as Array
from pkc.codegen.artifact import Artifact, Base, SignalParameter, Wait, Waits
from pkc.diagnostics import PkcError
from pkc.runtime import faults
from pkc.runtime import mesh as module
from pkc.runtime.driver import Driver
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.test_reports import Memory

KERNEL = Artifact(
    name="copy",
    target="sm_90a",
    cubin=b"machine code",
    arrays=(
        Array("C", "f32", ("M", "K"), "symmetric", None, False),
        Array("reports", "i32", ("report_ctas", 12, 8), "private", None, True),
    ),
    signals=(SignalParameter("seen", (1,)),),
    fields=(Base("reports_base", "reports"),),
    threads=384,
    shared_bytes=0,
    cluster=1,
    comm_sms=0,
    waits=Waits("reports", "report_ctas", 12, (Wait("storer", "seen", "raised", "k.pk", 2, 5),)),
)
PATIENCE = 10.0
TITLE = "error[PK838]: other ranks have given up waiting"


class Ranks:
    """A process for each of two ranks, which does `work`; each says in words what it has seen."""

    def __init__(self, work: Callable[[str, int, Connection], None]) -> None:
        self.name = uuid.uuid4().hex
        context = multiprocessing.get_context("spawn")
        self.pipes = [context.Pipe() for _ in range(2)]
        self.processes = [
            context.Process(target=work, args=(self.name, rank, self.pipes[rank][1]), daemon=True) for rank in range(2)
        ]
        for process in self.processes:
            process.start()

    def says(self, rank: int) -> str:
        pipe, _ = self.pipes[rank]
        assert pipe.poll(6 * PATIENCE), f"rank {rank} says nothing"
        return pipe.recv()


def _rank(name: str, rank: int, pipe: Connection) -> None:
    _begin(name, rank)
    files = _files()
    # Each launches something else last.
    mesh = _launched(rank, (4, 8) if rank else (8, 4))
    if rank:
        mesh.alarm.raise_it()
    pipe.send(_raised(mesh))
    mesh.close()
    # One is in the middle of what all do together.
    mesh = _launched(rank, (4,))
    if rank:
        time.sleep(0.3)
        mesh.alarm.raise_it()
        mesh.close()
    else:
        pipe.send(_raised(mesh, alone=True))
        mesh.close()
    del mesh
    gc.collect()
    pipe.send(f"{_files() - files} files more")
    # One is killed.
    mesh = _launched(rank, (4,))
    if rank:
        os.kill(os.getpid(), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while mesh.alarm.limit > 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    mesh.synchronize()  # nothing is wrong as long as nobody waits
    mesh.alarm.raise_it()
    pipe.send(_raised(mesh))
    mesh.close()


def _begin(name: str, rank: int) -> None:
    numbers = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": 29500}
    os.environ.update({key: str(value) for key, value in numbers.items()}, TORCHELASTIC_RUN_ID=name)
    module._ENDING, faults._PATIENCE = 0.1, 0.5  # nothing runs here that would have to end, or has reports


def _failing(name: str, rank: int, pipe: Connection) -> None:
    _begin(name, rank)
    mesh = Mesh.from_torchrun(driver=Driver(Memory(gpus=2)))
    kernel, array = LoadedKernel(KERNEL, mesh), mesh.empty((4, 4), "f32")
    kernel({"C": array})
    assert mesh.group is not None
    mesh.group.agree("has launched")
    if rank:
        mesh.driver.api.failing["cuLaunchKernelEx"] = 701
        try:
            kernel({"C": array})
        except PkcError as error:
            pipe.send(str(error))
        pipe.send(_raised(mesh))
        os._exit(3)  # as a program does that nobody keeps from ending
    while not mesh.group.left():
        time.sleep(0.01)
    time.sleep(3 * faults.PERIOD)
    pipe.send(_raised(mesh))
    mesh.close()


def _launched(rank: int, sizes: tuple[int, ...]) -> Mesh:
    """A new mesh on which a kernel has been launched."""
    mesh = Mesh.from_torchrun(driver=Driver(Memory(gpus=2)))
    kernel = LoadedKernel(KERNEL, mesh)
    arrays = {size: mesh.empty((size, 4), "f32") for size in (4, 8)}
    for size in (4, 8, *sizes):  # the first launches are compared
        kernel({"C": arrays[size]})
    assert mesh.group is not None
    mesh.group.agree("has launched")
    return mesh


def _raised(mesh: Mesh, alone: bool = False) -> str:
    """What a mesh raises when it is asked again and again, or alone for what all do together."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if alone and mesh.group is not None:
                mesh.group.agree("is alone")
            mesh.synchronize()
        except PkcError as error:
            return str(error)
        time.sleep(0.01)
    return "nothing"


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _sockets(name: str) -> list[str]:
    return [line for line in Path("/proc/net/unix").read_text().splitlines() if name in line]


def test_a_launch_that_fails_ends_the_waits_of_others() -> None:
    """Each process raises which rank it was and why, also when that has ended since."""
    ranks = Ranks(_failing)
    assert "`cuLaunchKernelEx` failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in ranks.says(1)
    reason = (
        "its launch of `copy` with M=4, K=4 has failed: error[PK822]: `cuLaunchKernelEx` failed: CUDA_ERROR_LAUNCH_OUT"
    )
    for rank in range(2):
        title, *rest = ranks.says(rank).splitlines()
        assert title == "error[PK839]: a launch has failed on rank 1"
        assert rest[0] == "  = note: rank 0: it has launched `copy` with M=4, K=4 last"
        assert rest[1].startswith(f"          rank 1: {reason}")
    for process in ranks.processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in ranks.processes] == [0, 3]


def test_every_process_raises_what_each_has_launched() -> None:
    ranks = Ranks(_rank)
    note = """\
  = note: rank 0: it has launched `copy` with M=4, K=4 last
          rank 1: it has launched `copy` with M=8, K=4 last"""
    for rank in range(2):
        title, *rest = ranks.says(rank).splitlines()
        assert title == TITLE
        assert "\n".join(rest).startswith(note)
    said = ranks.says(0)
    assert said.startswith(TITLE), "what waits for another process ends, too"
    assert "rank 0: it has launched `copy` with M=4, K=4 last, and waits until each of the others is alone\n" in said
    assert [ranks.says(rank) for rank in range(2)] == ["0 files more"] * 2
    assert "rank 1: its process has ended" in ranks.says(0)
    for process in ranks.processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in ranks.processes] == [0, -signal.SIGKILL]
    assert _sockets(ranks.name) == []
    # Those of other programs come and go.
    assert not [path for path in Path("/dev/shm").iterdir() if "pkc" in path.name]
