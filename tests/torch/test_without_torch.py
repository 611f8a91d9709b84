"""What modules that need torch say without it, or without a GPU of its own; and layers on what stands in for it."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import pkc
from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.errors import NoDriver
from tests.torch.modules import module_of

REFUSED = """\
error[PK869]: `{module}` needs torch, which cannot be imported
  = note: import of torch halted; None in sys.modules
  = help: `pip install torch`; kernels run on arrays of `pkc.mesh()` without it"""


@pytest.mark.parametrize("module", ["pkc.torch", "pkc.nn"])
def test_modules_that_need_it(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pkc.torch", "pkc.nn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PkcError) as error:
        importlib.import_module(module)
    assert str(error.value) == REFUSED.format(module=module)
    assert isinstance(error.value, ImportError)


def test_nobody_catches_it(tmp_path: Path) -> None:
    """One line of the program, none of pkc."""
    script = tmp_path / "program.py"
    script.write_text("import sys\nsys.modules['torch'] = None\nimport pkc.nn\n", encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    head = f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>\n    import pkc.nn\n'
    assert done.stderr == f"{head}{REFUSED.format(module='pkc.nn')}\n"


def _stand_ins(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    for name, stands_in in modules.items():
        monkeypatch.setitem(sys.modules, name.replace("__", "."), stands_in)


@pytest.mark.parametrize("has_driver", [False, True])
def test_a_mesh_without_gpus(has_driver: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch would fail with an assertion."""
    group = SimpleNamespace(group_name="0")
    c10d = SimpleNamespace(_resolve_process_group=lambda _: group, _get_default_group=lambda: group)
    cuda = SimpleNamespace(is_available=lambda: False)
    _stand_ins(
        monkeypatch,
        torch=SimpleNamespace(),
        torch__cuda=cuda,
        torch__distributed=SimpleNamespace(),
        torch__distributed__distributed_c10d=c10d,
    )
    groups = module_of("groups")

    def load() -> None:
        if not has_driver:
            raise PkcError(NoDriver(NOWHERE, "there is no libcuda"))

    monkeypatch.setattr(groups, "load", load)
    with pytest.raises(PkcError, match="PK820") as error:
        groups.mesh_of(group)
    reason = "torch finds none; builds of torch for CPUs have no CUDA" if has_driver else "there is no libcuda"
    assert f"  = note: {reason}\n" in str(error.value)


@pytest.mark.parametrize(
    ("choices", "weights", "said"),
    [
        ("int64", "float32", "choices are torch.int64, not int32"),
        ("int32", "bfloat16", "weights are torch.bfloat16, not float32"),
    ],
)
def test_types_of_a_mixture(choices: str, weights: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is wrong is named."""
    dtypes = {name: f"torch.{name}" for name in ("int32", "int64", "float32", "bfloat16")}
    parts = dict.fromkeys(("attending", "fused", "kernels", "plain"), SimpleNamespace())
    _stand_ins(
        monkeypatch,
        torch=SimpleNamespace(**dtypes),
        torch__distributed__distributed_c10d=SimpleNamespace(),
        pkc__torch=SimpleNamespace(**parts),
        pkc__torch__attending=SimpleNamespace(as_kernels_read=None),
        pkc__torch__groups=SimpleNamespace(Place=None, place_of=None),
        pkc__torch__launches=SimpleNamespace(Launch=None, loaded=None),
        pkc__torch__operators=SimpleNamespace(ranks_of=None),
        pkc__torch__routes=SimpleNamespace(room=None, routes=None),
    )
    check = module_of("experts")._check
    x, up, down = (SimpleNamespace(shape=shape, dtype="torch.bfloat16") for shape in ((4, 8), (2, 8, 16), (2, 16, 8)))
    chosen, by = (SimpleNamespace(shape=(4, 2), dtype=f"torch.{name}") for name in (choices, weights))
    with pytest.raises(ValueError, match=f"^moe_mlp: {said}$"):
        check(x, chosen, by, up, up, down)


def _layers(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """A module of `pkc.nn` on layers that are none."""
    nn = SimpleNamespace(Module=object, functional=SimpleNamespace(gelu=lambda x: x))
    linear = SimpleNamespace(
        **dict.fromkeys(("alike", "as_made", "project")),
        ColumnParallelLinear=lambda *_, **__: SimpleNamespace(ranks=1),
        RowParallelLinear=lambda *_, **__: None,
    )
    _stand_ins(
        monkeypatch,
        torch=SimpleNamespace(nn=nn),
        pkc__torch=SimpleNamespace(),
        pkc__torch__activated=SimpleNamespace(ACTIVATIONS={"gelu": nn.functional.gelu}),
        pkc__nn=SimpleNamespace(),
        pkc__nn__linear=linear,
    )
    monkeypatch.setattr(pkc, "torch", SimpleNamespace(), raising=False)
    spec = importlib.util.spec_from_file_location(f"{name}_alone", Path(pkc.__file__).parent / "nn" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_activations(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _layers(monkeypatch, "mlp").TensorParallelMLP
    for known in ("gelu", abs):
        assert callable(made(8, 16, activation=known).activation)
    for wrong in (3, None, ["gelu"], "tanh"):
        with pytest.raises(ValueError, match=r"must be a function or one of gelu$"):
            made(8, 16, activation=wrong)


def test_numbers_of_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _layers(monkeypatch, "attention").TensorParallelAttention
    assert made(32, 4, groups=2).features == 8
    for heads, groups in ((0, None), (4, 0), (-4, None)):
        with pytest.raises(ValueError, match="there must be at least one of each"):
            made(32, heads, groups=groups)
    with pytest.raises(ValueError, match="do not divide evenly"):
        made(32, 3)
