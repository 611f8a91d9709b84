"""`pkc trace` without a GPU: how much room for records it allocates, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from click.testing import CliRunner

from pkc.cli.main import cli
from pkc.cli.trace import run
from pkc.codegen.artifact import Trace
from pkc.driver.hardware import Call
from pkc.runtime.mesh import Mesh

TRACE = Trace("trace", "trace_ctas", "trace_records", ("consumer", "storer"), ())


@dataclass
class Gpus:
    """In place of mesh, call and kernel. Role 1 of CTA 2 of rank 1 writes most: 41 records."""

    grid: int = 3
    dims: dict[str, int] = field(default_factory=lambda: {"M": 8})
    local: tuple[int, ...] = (0, 1)
    log: list[Any] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)

    @property
    def kernel(self) -> Gpus:
        return self

    def launch(self, *, dims: dict[str, int]) -> None:
        self.last = dims
        self.log.append(("launch", dims["trace_ctas"], dims["trace_records"]))

    def synchronize(self, timeout: float) -> None:
        self.log.append("synchronize")

    def scratch(self, name: str, dims: Mapping[str, int]) -> int:
        assert name == "trace"
        assert dims == self.dims | self.last
        return 4096

    def zero(self, offset: int, count: int) -> None:
        self.log.append(("zero", offset, count))

    def read(self, rank: int, offset: int, count: int) -> np.ndarray[Any, Any]:
        words = np.zeros((3, 2, self.last["trace_records"], 4), np.int32)
        assert words.nbytes == count
        words[:, :, 0, 0] = 7
        words[2, 1, 0, 0] = 20 + 21 * rank
        return words.view(np.uint8).ravel()


def test_the_first_launches_say_how_much_room_is_needed() -> None:
    gpus = Gpus()
    found = run(cast("Call", gpus), cast("Mesh", gpus), TRACE, 3)
    assert [words.shape for words in found] == [(3, 2, 41, 4)] * 2
    assert gpus.log == [
        ("launch", 3, 2),
        "synchronize",
        ("zero", 4096, 3 * 2 * 2 * 16),
        ("launch", 3, 2),
        "synchronize",
        ("launch", 3, 41),
        "synchronize",
        ("zero", 4096, 3 * 2 * 41 * 16),
        ("launch", 3, 41),
        ("launch", 3, 41),
        ("launch", 3, 41),
        "synchronize",
    ]


def test_a_simulation_has_no_debug_build() -> None:
    command = ["run", "examples/gemm_rs.pk", "--ranks", "2", "--set", "M=256,N=256,K=64", "--debug"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 2
    assert "--debug is for GPUs; a simulation reports deadlocks as it is" in result.output
