"""Lanes of a time line made by hand, and the pictures of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import pkc
from pkc.cli.main import cli
from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program, load_program
from pkc.timeline import diagram, differences, page, png
from pkc.timeline.lanes import BINS, Timeline, timeline
from pkc.timeline.measured import read
from pkc.timeline.text import text

ROOT = Path(__file__).parents[2]


def thread(tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": tid, "name": "thread_name", "args": {"name": name}}


def span(tid: int, kind: str, begin: float, length: float, **args: float) -> dict[str, Any]:
    given = {"task": 0, **args}
    return {"ph": "X", "pid": 0, "tid": tid, "ts": begin, "dur": length, "name": kind, "cat": kind, "args": given}


EVENTS = [
    thread(0, "CTA 0 (SM 3) storer"),
    thread(1, "CTA 0 (SM 3) loader"),
    thread(2, "CTA 7 (SM 9) loader"),
    # The first half of loader 1 is a task, half of which waits; loader 2 does nothing but a wait outside of tasks.
    span(1, "task", 0, 8, **{"waits for `A`, us": 4.0}),
    span(2, "wait", 8, 8, task=-1),
    span(0, "task", 8, 8),
    span(0, "drain", 12, 4),
    {"ph": "C", "pid": 0, "ts": 0, "name": "link out", "args": {"link out": 0.5}},
    {"ph": "C", "pid": 0, "ts": 8, "name": "link out", "args": {"link out": 1.0}},
]


@pytest.fixture
def shown() -> Timeline:
    return timeline("by hand", EVENTS, 16.0)


def halves(values: np.ndarray[Any, Any]) -> list[float]:
    return [float(part.mean()) for part in np.split(values, 4)]


def test_shares(shown: Timeline) -> None:
    loader, storer, link = shown.lanes
    assert (loader.name, storer.name, link.name) == ("loader", "storer", "link out")
    assert halves(loader.works) == pytest.approx([0.25, 0.25, 0, 0])
    assert halves(loader.waits) == pytest.approx([0.25, 0.25, 0.5, 0.5])
    assert halves(storer.works) == pytest.approx([0, 0, 1, 0])
    assert halves(storer.waits) == pytest.approx([0, 0, 0, 1])
    assert halves(link.works) == pytest.approx([0.5, 0.5, 1, 1])


def test_text(shown: Timeline) -> None:
    assert text(shown, 16.0, columns=12).splitlines() == [
        "by hand",
        "                  0    16.0 us",
        "rank 0  loader   |▂▂▂▂▂▂      | works 12%, waits 38%",
        "        storer   |      ███   | works 25%, waits 25%",
        "        link out |▄▄▄▄▄▄██████| 75% used",
    ]


def test_page(shown: Timeline) -> None:
    """It is well-formed, has an area for each role's work and waits, and says what a span is."""
    drawn = page.drawing([shown], 32.0)
    tree = ElementTree.fromstring(f"<body>{drawn}</body>")
    kinds = [shape.get("class") for shape in tree.iter() if shape.tag == "polygon"]
    assert kinds == ["works", "waits", "works", "waits", "used"]
    boxes = [shape for shape in tree.iter() if shape.tag == "rect"]
    told = [title.text for box in boxes for title in box]
    assert "drain, 12.00 to 16.00 us" in told
    (drain,) = (box for box in boxes if box[0].text == "drain, 12.00 to 16.00 us")
    task = next(box for box in boxes if box[0].text == "task, 0.00 to 8.00 us")
    assert float(task.get("width", 0)) == pytest.approx(2 * float(drain.get("width", 0)))


class Panel:
    """In place of an axis of matplotlib."""

    def __init__(self) -> None:
        self.spines = MagicMock()
        self.stackplot, self.set_xlim = MagicMock(), MagicMock()

    def __getattr__(self, name: str) -> MagicMock:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()


def test_png(shown: Timeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One panel for each lane, with its shares on the common axis."""
    panels = np.empty((len(shown.lanes), 1), object)
    panels[:, 0] = [Panel() for _ in shown.lanes]
    figure = MagicMock()
    pyplot = SimpleNamespace(
        subplots=lambda rows, columns, **_: (figure, panels),
        close=lambda figure: None,
    )
    monkeypatch.setitem(sys.modules, "matplotlib", MagicMock())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    png.draw([shown], 32.0, tmp_path / "a.png")
    for panel, lane in zip(panels[:, 0], shown.lanes, strict=True):
        at, works, waits = panel.stackplot.call_args.args
        assert at[0] == 16.0 / BINS
        assert works is lane.works and waits is lane.waits
    panels[-1, 0].set_xlim.assert_called_with(0, 32.0)
    assert figure.savefig.call_args.args == (tmp_path / "a.png",)


def test_without_matplotlib(shown: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PkcError, match="PK919"):
        png.draw([shown], 16.0, Path("a.png"))


@pytest.mark.parametrize("content", ["no JSON", "[]", '{"traceEvents": []}', '{"traceEvents": [1]}'])
def test_files_that_are_no_time_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(PkcError, match="PK918"):
        read(tmp_path / "a.json")


SPAN = span(1, "task", 0, 8, **{"waits for `A`, us": 4.0})


def without(key: str) -> list[dict[str, Any]]:
    return [EVENTS[1], {name: value for name, value in SPAN.items() if name != key}]


@pytest.mark.parametrize(
    "events",
    [
        [SPAN],  # of a thread that has no name
        [thread(1, "worker"), SPAN],
        *([EVENTS[1], {**SPAN, key: "a"}] for key in ("ts", "dur", "pid", "tid", "args")),
        *([EVENTS[1], {**SPAN, key: float("nan")}] for key in ("ts", "dur")),
        *map(without, SPAN),
        [EVENTS[1], {**SPAN, "dur": -1}],
        [EVENTS[1], {**SPAN, "cat": 3}],
        [EVENTS[1], {**SPAN, "args": {"task": 0, "waits for `A`, us": "a"}}],
        [EVENTS[1], {**SPAN, "args": {}}],
        [*EVENTS, {"ph": "C", "pid": 0, "ts": 0, "name": "link out", "args": {}}],
        [*EVENTS, {"ph": "C", "pid": 0, "ts": "a", "name": "link out", "args": {"link out": 1}}],
    ],
)
def test_damaged_events(events: list[dict[str, Any]], tmp_path: Path) -> None:
    """What lanes cannot be made of is refused where it is read."""
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    with pytest.raises(PkcError, match="PK918"):
        read(tmp_path / "a.json")


def test_events_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": EVENTS}), encoding="utf-8")
    assert read(tmp_path / "a.json") == EVENTS


def test_where_python_saves(tmp_path: Path) -> None:
    found = pkc.load(ROOT / "examples" / "gemm.pk").timeline(ranks=1, M=256, N=256, K=256)
    found.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(PkcError) as error:
        found.save("a.txt")
    assert str(error.value) == (
        "error[PK926]: `path` cannot be 'a.txt'\n  = help: `path` is a name that ends in .html, .png or .json"
    )
    for name in ("a.html", "a.json"):
        with pytest.raises(PkcError, match="PK924"):
            found.save(tmp_path / "missing" / name)


def test_predicted_and_measured_on_one_axis(tmp_path: Path) -> None:
    """What `pkc trace` has written stands below what is predicted, on the axis of the longer one."""
    measured, drawn, events = tmp_path / "m.json", tmp_path / "a.html", tmp_path / "p.json"
    measured.write_text(json.dumps({"traceEvents": [*EVENTS, span(0, "task", 0, 500)]}), encoding="utf-8")
    base = ["timeline", str(ROOT / "examples" / "gemm.pk"), "--ranks", "1", "--set", "M=256,N=256,K=256"]
    result = CliRunner().invoke(cli, [*base, "--measured", str(measured), "-o", str(drawn)])
    assert result.exit_code == 0, result.output
    assert "measured: m.json, 500.0 us" in result.output
    assert "500 us" in drawn.read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, [*base, "-o", str(events)]).exit_code == 0
    assert timeline("again", read(events), 10.0).lanes


def test_the_page_of_a_kernel(tmp_path: Path) -> None:
    """It has the source, an arrow for each channel, the passes; the last line of the terminal is where it is."""
    drawn = tmp_path / "gemm.html"
    base = ["explain", str(ROOT / "examples" / "gemm.pk"), "--ranks", "1", "--set", "M=256,N=256,K=256"]
    result = CliRunner().invoke(cli, [*base, "--html", str(drawn)])
    assert result.exit_code == 0, result.output
    assert "loader --> consumer   A, B: " in result.output
    assert result.output.splitlines()[-1] == str(drawn)
    content = drawn.read_text(encoding="utf-8")
    assert "acc += A[m, k] @ B[k, n]" in content
    assert "<code>pk-assign-roles</code>" in content and "threads of" in content
    assert "http" not in content.replace("http://www.w3.org", "")


def test_the_page_is_html() -> None:
    command = ["explain", "examples/gemm.pk", "--ranks", "1", "--set", "M=256,N=256,K=256", "--html", "a.txt"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 2
    assert "--html writes .html" in result.output


def test_signals_are_arrows() -> None:
    kernel = compile_program(load_program(ROOT / "examples" / "gemm_rs.pk"), level="roles").kernel
    assert set(diagram.text(kernel)) == {
        "loader --> consumer   A, B: 3 stages",
        "consumer --> storer   cast: 1 stage",
        "storer ~~> communicator   C.arrived",
        "storer ~~> consumer   C.arrived",
        "communicator ~~> storer   entered",
    }


def test_differences_side_by_side(tmp_path: Path) -> None:
    for name, lines in (("00-input", "a b c d"), ("01-same", "a b c d"), ("02-other", "a b x d e")):
        (tmp_path / f"{name}.mlir").write_text("\n".join(lines.split()), encoding="utf-8")
    ((name, before, after),) = differences.changes(tmp_path)
    assert name == "other"
    table = ElementTree.fromstring(differences.sides(before, after))
    assert [tuple(cell.text or "" for cell in row) for row in table] == [
        ("a", "a"), ("b", "b"), ("c", "x"), ("d", "d"), ("", "e"),
    ]  # fmt: skip
    marked = [cell.text for cell in table.iter("td") if cell.get("class")]
    assert marked == ["c", "x", "e"]


def test_the_command_says_that_the_estimate_differs() -> None:
    """As `pkc explain` does: all sums of a matrix over two ranks, once predicted and once estimated."""
    path = str(ROOT / "examples" / "all_reduce.pk")
    for command in ("timeline", "explain"):
        result = CliRunner().invoke(cli, [command, path, "--ranks", "2", "--set", "M=1024,N=1024"])
        assert "times the estimate of" in result.output, result.output
