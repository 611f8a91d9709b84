"""Published litmus tests: small files in their formats, written here, become pkc's, with verdicts and reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.litmus.__main__ import FILES
from tests.litmus.canonical import canonical
from tests.litmus.published import dat3m, mixedproxy
from tests.litmus.published.__main__ import main
from tests.litmus.published.compare import Compared, compared
from tests.litmus.published.convert import NotModelled, converted
from tests.litmus.published.ptx import Asked, NotRead, clauses, negation
from tests.litmus.statements import parse, parse_file

SENT = """\
PTX sent
"a message (to another GPU)"
{ data=0; ready=0; P1:r0=0; }
 P0@cta 0,gpu 0       | P1@cta 0,gpu 1           ;
 ld r7, 5             | ld.acquire.sys r0, ready ;
 st.weak data, r7     | ld.weak r1, data         ;
 st.release.sys ready, 1 |                       ;
~exists (P1:r0 == 1 /\\ P1:r1 != 5)
"""

SPUN = """\
PTX spun
{ data=0; ready=0; }
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0           ;
 st.weak data, 1      | LC00:                    ;
 fence.acq_rel.gpu    | ld.relaxed.gpu r0, ready ;
 st.relaxed.gpu ready, 1 | bne r0, 0, LC01       ;
                      | goto LC00                ;
                      | LC01:                    ;
                      | fence.acq_rel.gpu        ;
                      | ld.weak r1, data         ;
exists (P1:r1 == 0)
"""

MET = """\
PTX met
{ x=0; y=0; }
 P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
 st.weak x, 1   | st.weak y, 1   ;
 bar.cta.sync 3 | bar.cta.sync 3 ;
 ld.weak r0, y  | ld.weak r1, x  ;
forall (P0:r0 == 1 \\/ P1:r1 == 1)
"""

FENCED = """\
PTX fenced
{ x=0; y=0; }
 P0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;
 st.weak x, 1   | st.weak y, 1   ;
 fence.sc.sys   | fence.sc.sys   ;
 ld.weak r0, y  | ld.weak r1, x  ;
exists (0:r0 = 0 /\\ 1:r1 = 0)
"""

TAKEN = """\
PTX taken
{ lock=0; }
 P0@cta 0,gpu 0                   ;
 atom.relaxed.gpu.cas r0, lock, 0, 1 ;
exists (P0:r0 == 0)
"""

TEXTURES = """\
.global x;
.texref t virtually aliases x;
.global y physically aliases x;
// variants

d0.b0.t0 {
  st [x], 3;
  $0
  $1 r0, $2;
}

$3(r0 $4 3) as outcome;

$$

                      | ld  | [x] | assert | ==
                      | tld | [t] | permit | !=
fence.proxy.texture;  | tld | [t] | assert | ==
fence.proxy.alias;    | ld  | [y] | assert | ==
"""

SAID = """\
.global x;
.global flag;

d0.b0.t0 { st.weak [x], 1; st.release.cta [flag], 1; }
d0.b1.t0 { ld.acquire.cta r0, [flag] == 1; ld r1, [x]; }

permit(r1 != 1) as outcome;
"""

HOLDS = {"sent": 1, "spun": 0, "met": 1, "fenced": 0, "taken": 1}
"""Whether what the file says at its end is so."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"sent": SENT, "spun": SPUN, "met": MET, "fenced": FENCED, "taken": TAKEN}
    own = tmp_path / "litmus" / "PTX"
    own.mkdir(parents=True)
    for name, text in files.items():
        (own / f"{name}.litmus").write_text(text, encoding="utf-8")
    _verdicts(tmp_path, HOLDS)
    (tmp_path / "textures.test").write_text(TEXTURES, encoding="utf-8")
    (tmp_path / "said.test").write_text(SAID, encoding="utf-8")
    return tmp_path


def _verdicts(folder: Path, holds: dict[str, int]) -> None:
    lines = [f"litmus/PTX/{name}.litmus,{so}" for name, so in holds.items()]
    (folder / "PTXv7_5-expected.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _found(folder: Path) -> dict[str, Compared]:
    tests = [*dat3m.tests(folder), *mixedproxy.tests(folder)]
    own = [test for path in FILES for test in parse_file(path)]
    return {one.test.name: one for one in compared(tests, own)}


def test_verdicts_and_reasons(folder: Path) -> None:
    found = _found(folder)
    assert {name: (one.ptx, one.pkc) for name, one in found.items() if one.modelled} == {
        "sent": ("forbidden", "forbidden"),
        "spun": ("forbidden", "forbidden"),
        "met": ("forbidden", "forbidden"),
        "fenced": ("forbidden", "refused PK730"),
        "said": ("allowed", "refused PK730"),
        "textures 1": ("forbidden", "forbidden"),
        "textures 2": ("allowed", "refused PK732"),
        "textures 3": ("forbidden", "forbidden"),
    }
    assert [name for name, one in found.items() if one.modelled and not one.agrees] == ["fenced"]
    assert found["fenced"].reason.startswith("pkc has no fence.sc (8.9.3)")
    assert {name: one.reason for name, one in found.items() if not one.modelled} == {
        "taken": "an atomic operation that gives a value",
        "textures 4": "two addresses of one location in one proxy",
    }


def test_statements_of_our_own_are_found(folder: Path) -> None:
    found = _found(folder)
    own = {name: one.own for name, one in found.items() if one.own}
    assert own == {
        "sent": "MP.sys",
        "spun": "MP.gpu",
        "met": "p.SB+bar-const-equal",
        "fenced": "SB.sc",
        "said": "p.MP-cta",
        "textures 1": "CoWR",
        "textures 2": "p.Proxy-SingleThread-rf-genW-surR",
        "textures 3": "p.Proxy-SingleThread-rf-genW-surF-surR",
    }


def test_the_conversion_is_this(folder: Path) -> None:
    made = {test.name: converted(test) for test in dat3m.tests(folder) if test.name in ("sent", "spun")}
    bodies = {name: [[str(s) for s in thread.body] for thread in test.threads] for name, test in made.items()}
    assert bodies == {
        "sent": [["st data 5", "signal ready @1 release.sys"], ["wait ready 1", "fence acquire.sys", "ld r1 @0 data"]],
        "spun": [["st data 1", "signal ready release.gpu"], ["wait ready 1", "fence acquire.gpu", "ld r1 data"]],
    }
    assert [str(atom) for every in made["sent"].exists for atom in every] == ["P1.r1 != 5"]


def test_the_table(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_LITMUS", str(folder))
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "   1  not modelled: an atomic operation that gives a value" in out
    assert out.endswith(
        "10 published tests: 8 compared, 7 agree; 8 of those compared are in tests/litmus too; 2 not modelled\n"
    )


def test_a_difference_without_a_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _verdicts(folder, {"sent": 0})
    assert main([str(folder)]) == 1
    assert "   1  without a reason\n        sent\n" in capsys.readouterr().out


def test_without_a_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PKC_LITMUS", raising=False)
    assert main([]) == main([str(tmp_path)]) == 2
    assert "there are no tests" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("instead", "of", "why"),
    [
        ("ready=1;", "ready=0;", "memory begins with other values than 0"),
        ("suld.weak r1, data", "ld.weak r1, data", ""),
        ("sust.weak data, r7", "st.weak data, r7", "stores through the surface proxy"),
        ("atom.acq_rel.sys.add r0, ready, 1", "ld.acquire.sys r0, ready", "an atomic operation that gives a value"),
        ("red.release.sys.or ready, 1", "st.release.sys ready, 1", "an atomic operation other than an addition"),
        ("bar.cta.sync 1, r0", "ld.weak r1, data", "a barrier that a loaded value names"),
        ("add r1, r0, 1", "ld.weak r1, data", "arithmetic"),
        ("bne r0, 1, LC09", "ld.weak r1, data", "what a thread does depends on a value that it reads"),
        ("P1:r0 == P1:r1", "P1:r0 == 1", "two registers are compared"),
    ],
)
def test_what_is_not_modelled(instead: str, of: str, why: str) -> None:
    test = dat3m.parse(SENT.replace(of, instead), "sent.litmus", holds=True)
    if not why:
        assert [s.op for s in converted(test).threads[1].body[2:]] == ["acquire", "tma.ld", "commit", "consume", "read"]
        return
    with pytest.raises(NotModelled, match=why):
        converted(test)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SENT", "a test begins with `PTX`"),
        (SENT.replace("~exists", "never"), "it asks for nothing"),
        (SENT.replace("== 1 /", "is 1 /"), "`P1:r0` is compared with nothing"),
        (SENT.replace("!= 5)", "!= 5"), "a bracket of a condition is not closed"),
        (SENT.replace("P0@cta", "P0@cluster"), "`P0@cluster 0,gpu 0` is no thread"),
    ],
)
def test_a_file_that_is_no_test(text: str, why: str) -> None:
    with pytest.raises(NotRead, match=f"^sent.litmus: {why}"):
        dat3m.parse(text, "sent.litmus")


def test_conditions() -> None:
    assert clauses("~(a == 1 \\/ b != 2) /\\ c = 3") == clauses("a != 1 && b == 2 && c == 3")
    assert negation(clauses("a == 1 /\\ b == 2 \\/ c == 3")) == clauses("a != 1 /\\ c != 3 \\/ b != 2 /\\ c != 3")
    assert clauses("(a == 1 \\/ b == 1) /\\ a == 1") == ((Asked("a", True, "1"),),)


def test_equal_tests_have_other_names_values_and_places() -> None:
    text = "test A\nptx allowed 8.8\nP0 rank {0}:\n  st {2} {3} @{1}\n  signal f @{1} release.sys\nP1 rank {1}:\n"
    text += "  wait f 1\n  ld q {2}\nexists P1.q {4}\n"
    first, second, third = (
        next(parse(text.format(*given)))
        for given in ((0, 1, "x", 1, "= 0"), (1, 0, "y", 7, "!= 7"), (0, 1, "x", 1, "= 1"))
    )
    assert canonical(first) == canonical(second) != canonical(third)
