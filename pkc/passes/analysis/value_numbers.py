"""Value numbering: which values are surely equal, in one walk over the IR."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from pkc.passes.analysis.dependence import never_changes


class ValueNumbers:
    """A number for each value inside an operation; two values have the same one if `same_value` says that they are
    equal, and so are elements that the kernel only reads. Values from outside are equal to themselves alone."""

    def __init__(self, root: Operation) -> None:
        self._numbers: dict[SSAValue, int] = {}
        self._known: dict[Hashable, int] = {}
        for op in root.walk():
            self._number_results(op)

    def __getitem__(self, value: SSAValue) -> int:
        found = self._numbers.get(value)
        return self._of_key(value, value) if found is None else found

    def all(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(self[value] for value in values)

    def _number_results(self, op: Operation) -> None:
        # What makes the operands stands before their user, so they have their numbers: no recursion.
        if op.regions or not op.results or not (op.has_trait(Pure) or never_changes(op)):
            return
        given = (op.name, frozenset(op.properties.items()), frozenset(op.attributes.items()), self.all(op.operands))
        for number, result in enumerate(op.results):
            self._of_key(result, (*given, result.type, number))

    def _of_key(self, value: SSAValue, key: Hashable) -> int:
        number = self._known.setdefault(key, len(self._known))
        self._numbers[value] = number
        return number
