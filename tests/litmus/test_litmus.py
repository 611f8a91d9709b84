"""Litmus tests: pkc's verdict on each is that of the PTX ISA, or the test says why not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.litmus.__main__ import FILES, complaint, main
from tests.litmus.cuda import source_of, threads_of
from tests.litmus.statements import Litmus, parse, parse_file
from tests.litmus.verdicts import verdict_of

TESTS = [test for path in FILES for test in parse_file(path)]

MP = """\
test MP
about The signal releases the store.
ptx {verdict}
{lines}P0 rank 0:
  st x 1 @1
  signal f @1 release.sys
P1 rank 1:
  wait f 1
{fence}  ld r x
exists P1.r = 0
"""


def _mp(verdict: str, lines: str = "", fence: str = "") -> Litmus:
    (test,) = parse(MP.format(verdict=verdict, lines=lines, fence=fence))
    return test


@pytest.mark.parametrize("test", [test for test in TESTS if not test.unmodelled], ids=lambda test: test.name)
def test_verdict(test: Litmus) -> None:
    assert complaint(test, verdict_of(test)) is None


def test_every_test_is_named_once_and_has_its_sections() -> None:
    assert [name for name, count in Counter(test.name for test in TESTS).items() if count > 1] == []
    assert [test.name for test in TESTS if not test.about or not test.sections] == []
    section = re.compile(r"(8|9)(\.\d+){1,5}$")
    assert [test.name for test in TESTS if not all(map(section.match, test.sections))] == []


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = [path for path in FILES if path.stem == "holes"]
    assert main([str(path)]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.split() == ["hole.read-st", "PTX", "allowed", "pkc", "forbidden", "8.6,", "8.9.5"]
    assert last == "1 / 6 agreed / compared; 0 not modelled"


FENCE = "  fence acquire.sys\n"


@pytest.mark.parametrize(
    ("verdict", "lines", "fence", "wrong"),
    [
        ("forbidden 8.8", "", FENCE, None),
        ("forbidden 8.8", "", "", "pkc says PK731, the test says None"),
        ("forbidden 8.8", "code PK731\n", "", "explained by no `imprecise:`"),
        ("forbidden 8.8", "code PK731\nexplained hole: it is not\n", "", "explained by no `imprecise:`"),
        ("allowed 8.8", "", FENCE, "explained by no `hole:`"),
        ("forbidden 8.8", "explained imprecise: it is not\n", FENCE, "but the verdicts agree"),
    ],
)
def test_what_is_complained_of(verdict: str, lines: str, fence: str, wrong: str | None) -> None:
    test = _mp(verdict, lines, fence)
    found = complaint(test, verdict_of(test))
    assert found is None if wrong is None else wrong in (found or "")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("about nothing", "T: `none` is no verdict"),
        ("ptx maybe 8.8", "T: `maybe` is no verdict"),
        ("ptx allowed 8.8", "T: there is no condition"),
        ("ptx allowed 8.8\nexists P1.r is 0", "`P1.r is 0` is no atom of a condition"),
        ("stop", "name:2: stop: no such line"),
    ],
)
def test_a_line_that_is_no_statement(line: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        list(parse(f"test T\n{line}\n", "name"))


def test_a_statement_that_is_none() -> None:
    (test,) = parse("test T\nptx allowed 8.8\nP0 rank 0:\n  jump x\nexists x@0 = 1\n")
    with pytest.raises(ValueError, match="there is no statement `jump x`"):
        verdict_of(test)


# Each statement, and what stands in CUDA for it.
EACH = {
    "st x 1": "st(",
    "st.release.sys x 1": "st.release.sys.global.b32 [%0], %1;",
    "ld r x": "ld(",
    "ld.acquire.gpu r x": "ld.acquire.gpu.global.b32 %0, [%1];",
    "red x 1": "red.relaxed.sys.global.add.u32 [%0], %1;",
    "signal f release.gpu": "red.release.gpu.global.add.u32 [%0], 1;",
    "raise f 2 relaxed.sys": "red.relaxed.sys.global.max.u32 [%0], 2;",
    "send y 1": "st.relaxed.sys.global.v4.b32 [%0], {%1, %1, %1, %1};",
    "receive r y": "receives(",
    "wait f 2": "if (!reaches((run.counters + (0ull * run.instances + at) * 4), 2))",
    "reset f": "st.relaxed.sys.global.u32 [%0], 0;",
    "fence acquire.sys": "fence.acquire.sys;",
    "fence sc.gpu": "fence.sc.gpu;",
    "fence async.global": "fence.proxy.async.global;",
    "fence async.shared": "fence.proxy.async.shared::cta;",
    "barrier f": "red.release.sys.global.add.u32 [%0], 1;",
    "wait_group 1": "cp.async.bulk.wait_group 1;",
    "wait_group.read 0": "cp.async.bulk.wait_group.read 0;",
}
STAGED = {
    "tma.ld S x": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",
    "put S 1": "put(smem(stages[0]), run.bytes, v)",
    "commit S": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
    "wait_loads": "if (!completes(smem(&full[0]), 0))",
    "consume S": "if (!completes(smem(&full[0]), 0))",
    "read r S": "lds(smem(stages[0])",
    "tma.st x S": "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;",
    "tma.red x S": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;",
    "release S": "mbarrier.arrive.shared::cta.b64 _, [%0];",
    "acquire S": "if (!completes(smem(&empty[0]), 0))",
}


def _instructions(statements: Iterable[str], exists: str = "x@0 = 1") -> dict[str, str]:
    """What stands for each statement of a thread, up to the next one."""
    body = "\n".join(f"  {statement}" for statement in statements)
    (test,) = parse(f"test T\nptx allowed 8.8\nP0 rank 0:\n  ld q x\n{body}\nexists {exists}\n")
    parts = re.split(r"rest\(cycles_late\);  // (.*)\n", source_of(test))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_each_statement_is_its_instruction() -> None:
    wanted = EACH | STAGED
    found = _instructions(EACH) | _instructions(["acquire S", *STAGED])
    assert [statement for statement, text in wanted.items() if text not in found[statement]] == []


def test_mmas_are_of_a_warpgroup() -> None:
    (test,) = [test for test in TESTS if test.name == "mma.release"]
    text = source_of(test)
    assert threads_of(test) == 128 + 32
    assert text.count("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16") == 2
    assert text.count("wgmma.wait_group.sync.aligned 0;") == 2
    with pytest.raises(ValueError, match="a warpgroup does not do `ld q x`"):
        _instructions(["acquire S", "put S 1", "commit S", "consume S", "mma r S"])


def test_a_condition_is_asked_of_each_element() -> None:
    text = source_of(_mp("forbidden 8.8"))
    assert "(((run.outcome + (0ull * run.instances + at) * 4)[e] == 0u))" in text


def test_all_can_be_run_on_a_gpu() -> None:
    names = [test.name for test in TESTS if not test.unmodelled and source_of(test)]
    asynchronous = [name for name in names if name.startswith(("st.", "ld.", "stage.", "tma.", "mma.", "copy."))]
    assert len(asynchronous) >= 80
