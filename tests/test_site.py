"""The pages of the site: what they show runs, links lead somewhere, and each page is in the contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pkc.cli.main import main
from tests import pages
from tests.sweeps import sweep
from tools import gallery, site

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
QUICK = (
    "index.md",
    "editors.md",
    "from_triton.md",
    "from_thunderkittens.md",
    "from_nccl.md",
    "cookbook.md",
    "language.md",
    "gallery.md",
)
SLOW = (
    "tutorial.md",
    "races.md",
    "timeline.md",
    "checks.md",
    "machine.md",
    "passes.md",
    "performance.md",
    "simulator.md",
    "targets.md",
)
PAGES = sweep((*QUICK, *SLOW), QUICK.__contains__)
ELSEWHERE = {
    "architecture.md": "lines of pkc",
    "testing.md": "a line of the tests",
    "pytorch.md": "run on GPUs: tests/gpu/test_training.py",
    "runtime.md": "for GPUs: tests/test_pages.py",
}
"""Pages whose Python is no program to run here."""


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pages.write_files(page, tmp_path)
    ran = pages.run_python(page, tmp_path) + pages.compile_kernels(page)
    capsys.readouterr()
    for argv, shown in pages.commands(page):
        main(argv)
        printed = capsys.readouterr()
        lines = [*printed.out.splitlines(), *printed.err.splitlines()]
        assert pages.matches(shown, lines), f"{page}: {argv}\n" + "\n".join(lines)
        ran += 1
    assert ran


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_nothing_that_could_run_is_left_out(page: Path) -> None:
    """Programs and commands are in blocks that `test_what_a_page_shows_runs` runs, or listed; others say `text`, as
    what needs several GPUs does, or are kernels of tests that read their page."""
    shown = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    kinds = {kind for kind, _ in shown}
    assert not kinds & {"python", "pk", "console"} or page.name in {*QUICK, *SLOW, *ELSEWHERE}
    for kind, text in shown:
        if not kind and page.name not in ("cookbook.md", "language.md"):
            assert not re.search(r"^(?:\$ )?pkc |^(?:kernel|def) \w+\(", text, re.MULTILINE), text


def test_output_that_differs_is_found() -> None:
    assert pages.matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert not pages.matches(["a", "...", "d"], ["a", "b", "c"])
    assert not pages.matches(["a", "c"], ["a", "b"])
    assert not pages.matches([], ["a"])


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(text: str) -> set[str]:
    """What headings are called in links, as GitHub and the site have it."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    given = re.findall(r'<a id="([^"]+)"', text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings} | {*given}


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name}: {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found.read_text(encoding="utf-8")), f"{page.name}: {target}#{anchor}"


def test_every_page_is_in_the_contents() -> None:
    listed = set(re.findall(r": (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {page.name for page in DOCS.glob("*.md")}


def test_gallery_is_up_to_date() -> None:
    """After a change: `python -m tools.gallery`."""
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()


@pytest.mark.long
@pytest.mark.parametrize("one", gallery.EXHIBITS, ids=[one.name for one in gallery.EXHIBITS])
def test_pictures_are_what_is_predicted(one: gallery.Exhibit) -> None:
    """After a change: `python -m tools.gallery --pictures`."""
    assert (gallery.PICTURES / f"{one.name}.svg").read_text(encoding="utf-8") == gallery.draw(one)


def test_links_out_of_the_folder_lead_to_copies() -> None:
    page = DOCS / "decisions" / "x.md"
    found = dict(site.outside(page, "[a](../../examples/gemm.pk) [b](../language.md#words) [c](https://x.org)"))
    assert found == {"../../examples/gemm.pk": ROOT / "examples" / "gemm.pk"}
    assert site.copy_of(ROOT / "examples" / "gemm.pk") == "files/examples/gemm.pk.md"
    assert "kernel gemm(" in site.shown(ROOT / "examples" / "gemm.pk")
    assert "- `gemm.pk`" in site.shown(ROOT / "examples")
