"""Published verdicts beside pkc's: which agree, why others do not, and which tests have a statement of our own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pkc.diagnostics import PkcError
from pkc.sim.errors import Deadlock
from tests.litmus.canonical import Form, canonical
from tests.litmus.published.convert import NotModelled, converted
from tests.litmus.published.ptx import PtxTest
from tests.litmus.statements import Litmus
from tests.litmus.verdicts import verdict_of

RACES = (
    "weak accesses race, so that pkc promises nothing; PTX leaves out what nobody stores (8.10.4), orders that"
    " contradict program order (8.10.1), and threads that wait for ever"
)
NO_SC = "pkc has no fence.sc (8.9.3): the accesses race"
NO_STRONG = "pkc has no relaxed or ordered access to an array (8.7, 8.8): the accesses race"
FENCE_OF_WRITER = "8.9.5: in pkc a fence of the writer between proxies counts only where a channel leads to the access"
DECIDED = {
    "Release_acquire_pattern": "8.8: a release and a later strong store of the same thread to the same location are a"
    " release pattern too; Dat3M's verdict on the same test is pkc's"
}
"""Verdicts that PTX does not support, by test."""


@dataclass(frozen=True)
class Compared:
    """One published test beside pkc: `reason` says why pkc has no notion of it, or why verdicts differ."""

    test: PtxTest
    own: str
    """The name of the statement of our own that is the same test."""
    pkc: str = ""
    agrees: bool = False
    modelled: bool = True
    reason: str = ""

    @property
    def ptx(self) -> str:
        return "forbidden" if self.test.forbidden else "allowed"

    @property
    def unexplained(self) -> bool:
        return self.modelled and not self.agrees and not self.reason


def compared(tests: Iterable[PtxTest], own: Iterable[Litmus]) -> Iterator[Compared]:
    """Each test that a file has a verdict on, beside pkc's."""
    known: Mapping[Form, str] = {canonical(test): test.name for test in own if not test.unmodelled}
    for test in tests:
        if test.forbidden is None:
            continue
        try:
            litmus = converted(test)
        except NotModelled as why:
            yield Compared(test, "", modelled=False, reason=str(why))
            continue
        pkc, forbidden, code = _verdict(litmus)
        agrees = forbidden is test.forbidden
        reason = "" if agrees else _reason(test, litmus, forbidden, code)
        yield Compared(test, known.get(canonical(litmus), ""), pkc, agrees, reason=reason)


def _verdict(litmus: Litmus) -> tuple[str, bool, str | None]:
    try:
        verdict = verdict_of(litmus)
    except PkcError as error:
        if all(isinstance(found, Deadlock) for found in error.diagnostics):
            return "never ends", True, None
        raise
    return str(verdict), verdict.forbidden, verdict.code


def _reason(test: PtxTest, litmus: Litmus, forbidden: bool, code: str | None) -> str:
    """Why pkc's verdict is another one; nothing if that is not known."""
    if forbidden:
        return DECIDED.get(test.name, "")
    statements = [s for thread in litmus.threads for s in thread.body]
    if code == "PK732" and any(s.op == "fence" and s.operands == ("async.global",) for s in statements):
        return FENCE_OF_WRITER
    if code != "PK730":
        return ""
    if any(s.op == "fence" and s.operands[0].startswith("sc.") for s in statements):
        return NO_SC
    if any(s.op.startswith(("ld.", "st.")) for s in statements):
        return NO_STRONG
    return RACES
