"""The streams of calls from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import pkc
from pkc.language import *
from pkc.runtime.mesh import Mesh
from tests.calls.helpers import gathered, here, scaled, tensor, told
from tests.runtime.fake import Api


class FakeTorch:
    """The functions of torch that pkc uses: each GPU has a current stream, 7000 and its number."""

    def __init__(self) -> None:
        self.capturing, self.device = False, 0
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            is_current_stream_capturing=lambda: self.capturing,
            current_device=lambda: self.device,
            current_stream=lambda device: SimpleNamespace(cuda_stream=7000 + device),
        )


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    made = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def launch_streams(api: Api, call: Callable[[], None]) -> list[int]:
    api.launches.clear()
    call()
    return [launch.stream for launch in api.launches]


def test_without_torch_they_are_the_meshs_own(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    x, y = (gathered.empty(name, M=100, N=64) for name in ("X", "Y"))
    assert launch_streams(api, lambda: gathered(x, y)) == [rank.stream for rank in pkc.mesh().local]


def test_torchs_current_streams(api: Api, torch: FakeTorch) -> None:
    one = lambda: scaled(tensor(64, 64, device=2), tensor(64, 64, device=2, at=1), 1)  # noqa: E731
    assert launch_streams(api, one) == [7002]
    x, y = (gathered.empty(name, M=100, N=64) for name in ("X", "Y"))
    assert launch_streams(api, lambda: gathered(x, y)) == [7000, 7001, 7002, 7003]
    assert launch_streams(api, lambda: gathered(x, y, stream=[1, 2, 3, 4])) == [1, 2, 3, 4]


def test_torchs_streams_as_numbers(api: Api, torch: FakeTorch) -> None:
    """What torch has for compiled code makes no object for a stream."""
    begun: list[bool] = []
    torch.cuda.init = lambda: begun.append(True)
    vars(torch)["_C"] = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 8000 + device)
    one = lambda: scaled(tensor(64, 64, device=2), tensor(64, 64, device=2, at=1), 1)  # noqa: E731
    assert launch_streams(api, one) == launch_streams(api, one) == [8002]
    assert begun == [True]


def test_a_capture_takes_all_ranks_with_it(api: Api, torch: FakeTorch) -> None:
    x, y = (gathered.empty(name, M=100, N=64) for name in ("X", "Y"))
    gathered(x, y)
    local, torch.capturing = [rank.stream for rank in pkc.mesh().local], True
    api.calls.clear()
    api.capturing = {7000}
    assert launch_streams(api, lambda: gathered(x, y)) == local
    recorded = [call[2] for call in api.calls if call[0] == "cuEventRecord"]
    waiting = [call[1] for call in api.calls if call[0] == "cuStreamWaitEvent"]
    assert (recorded, waiting) == ([7000, *local], [*local, 7000, 7000, 7000, 7000])
    torch.device = 3
    expected = f"""\
error[PK856]: the stream that is being captured is on GPU 3, and rank 0 uses GPU 0
{here("gathered(x, y)")}
  = help: capture with GPU 0 as the current one: `with torch.cuda.device(0):`
"""
    assert told(lambda: gathered(x, y)) == expected


def test_a_first_call_in_a_capture(api: Api, torch: FakeTorch) -> None:
    x, y = (gathered.empty(name, M=100, N=64) for name in ("X", "Y"))
    torch.capturing = True
    api.capturing = {7000}
    assert told(lambda: gathered(x, y)).startswith("error[PK850]: the first launch of `gathered`")
    assert not api.launches


def test_ranks_of_one_gpu_do_not_wait_for_each_other(api: Api, torch: FakeTorch) -> None:
    mesh = Mesh.virtual(2)
    x, y = (gathered.empty(name, mesh, M=100, N=64) for name in ("X", "Y"))
    assert launch_streams(api, lambda: gathered(x, y)) == [rank.stream for rank in mesh.local]
