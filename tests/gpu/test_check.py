"""How the checks on GPUs treat processes that hang or die; without a GPU."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gpu import check
from tests.gpu.cases import CASES, EXAMPLES

CHILD = """\
import os, signal, sys, time

numbers = [int(number) for number in sys.argv[sys.argv.index("--here") + 1].split(",")]
if numbers[0] == 5:
    sys.exit("no GPU")
if os.fork() == 0:
    time.sleep(1000)  # holds the pipe
for number in numbers:
    print("@begin", number, "", flush=True)
    print("noise", flush=True)
    if number == 1:
        time.sleep(1000)
    if number == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    print("@wrong 3 is 1, expected 2" if number == 3 else f"@right {number} as it should be", flush=True)
    if number in (3, 4):
        os._exit(1)
"""


def test_hangs_and_deaths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setattr(check, "CHILD", [sys.executable, str(tmp_path / "child.py")])
    monkeypatch.setattr(check, "PATIENCE", 2)
    assert check.run_ranks(2, virtual=True, numbers=[0, 1, 2, 3, 4, 5]) == 4
    *found, last = capfd.readouterr().out.splitlines()
    told = ["not done after 2 s", "ended with status -11", "is 1, expected 2", "ended with status 1 | no GPU"]
    for line, number, text in zip(found, (1, 2, 3, 5), told, strict=True):
        assert line == f"2 virtual ranks  {CASES[number].name:34} WRONG: {text}"
    assert last.startswith("2 virtual ranks  2 of 6 cases are right")


GROUPED = """\
import os, sys

for number in sys.argv[sys.argv.index("--here") + 1].split(","):
    print("@wrong", number, "on", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
"""


def test_groups_of_gpus_share_the_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "child.py").write_text(GROUPED)
    monkeypatch.setattr(check, "CHILD", [sys.executable, str(tmp_path / "child.py")])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert check.groups_of(3, 5) == check.groups_of(2, 3) == [None]
    with monkeypatch.context() as others:
        others.setenv("CUDA_VISIBLE_DEVICES", "4,5,7,6")
        assert check.groups_of(2, 4) == ["4,5", "7,6"]
    assert check.run_ranks(2, virtual=False, numbers=range(5), groups=check.groups_of(2, 5)) == 5
    *found, last = capfd.readouterr().out.splitlines()
    wanted = [(number, ("0,1", "2,3")[number % 2]) for number in range(5)]
    assert sorted(found) == sorted(f"2 GPUs           {CASES[n].name:34} WRONG: on {gpus}" for n, gpus in wanted)
    assert last.startswith("2 GPUs           0 of 5 cases are right")


HANGS = """\
import os, sys, time

numbers = sys.argv[sys.argv.index("--here") + 1].split(",")
print("@begin", numbers[0], "", flush=True)
open(os.environ["MARK"] + numbers[0], "w").write(str(os.getpid()))
time.sleep(1000)
"""


def test_an_interrupt_ends_all_groups(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(HANGS)
    script = f"""\
import sys
from tests.gpu import check
check.CHILD = [sys.executable, {str(tmp_path / "child.py")!r}]
check.run_ranks(1, virtual=False, numbers=range(8), groups=["0", "1"])
"""
    environment = os.environ | {"MARK": f"{tmp_path}/began"}
    began = [tmp_path / f"began{number}" for number in range(2)]
    process = subprocess.Popen([sys.executable, "-c", script], cwd=check.ROOT, env=environment, stderr=subprocess.PIPE)
    while process.poll() is None and not all(path.exists() and path.read_text() for path in began):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=check.PATIENCE / 2)
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
    assert len(list(tmp_path.glob("began*"))) == 2, "no other case has begun"
    for path in began:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)


def test_cases_behind_one() -> None:
    everything = check.chosen(2, "")
    assert check.chosen(2, "", after=CASES[everything[6]].name) == everything[7:]
    with pytest.raises(SystemExit, match="no case is called 'gemm_r'"):
        check.chosen(2, "", after="gemm_r")
    with pytest.raises(SystemExit, match="no case is behind"):
        check.chosen(2, "", after=CASES[-1].name)


def test_names_tell_cases_apart() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_names_of_no_case() -> None:
    assert all("gemm_rs" in CASES[number].name.split() for number in check.chosen(2, "gemm_rs"))
    with pytest.raises(SystemExit, match="no case is called 'gemm_r'"):
        check.chosen(2, "gemm_r")


def test_every_example_is_a_case() -> None:
    texts = {case.text for case in CASES}
    names = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES.rglob("*.pk")}
    assert {name for name, text in names.items() if name not in texts and text not in texts} == set()


def test_sizes_are_those_of_the_dimensions() -> None:
    """Else a case ends on GPUs before anything is launched."""
    for case in CASES:
        text = case.text if "\n" in case.text else (EXAMPLES / f"{case.text}.pk").read_text(encoding="utf-8")
        head = re.sub(r"#.*", "", text[text.index("kernel ") :]).partition("):")[0]
        names = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"\[([^\]]*)\]", head))))
        found = names - {"ranks", *re.findall(r"(\w+): const", head)}
        for ranks in (1, 2, 3):
            assert all(set(dims) == found for dims in case.sizes(ranks)), case.name
