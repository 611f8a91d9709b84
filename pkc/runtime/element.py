"""Element types of arrays, as memory, tensor maps and other libraries see them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """`code` is that of `CUtensorMapDataType`; `typestr` that of `__cuda_array_interface__`.

    The latter has no bf16 and no 8-bit floats: they are shown as integers of their size. `torch` is the name there.
    """

    bytes: int
    code: int
    typestr: str
    torch: str


ELEMENTS: dict[str, Element] = {
    "bf16": Element(2, 9, "<i2", "bfloat16"),
    "f16": Element(2, 6, "<f2", "float16"),
    "f32": Element(4, 7, "<f4", "float32"),
    "i32": Element(4, 3, "<i4", "int32"),
    "i8": Element(1, 0, "|i1", "int8"),
    "e4m3": Element(1, 0, "|u1", "float8_e4m3fn"),
    "e5m2": Element(1, 0, "|u1", "float8_e5m2"),
}
"""By the names they have in the language."""

_NAMES = {element.torch: name for name, element in ELEMENTS.items()} | {name: name for name in ELEMENTS}


def element_name(dtype: object) -> str:
    """The name in the language of `torch.bfloat16`, or of a name itself; unknown types as their text."""
    found = _seen.get(dtype)
    if found is None:
        text = str(dtype).removeprefix("torch.")
        found = _seen[dtype] = _NAMES.get(text, text)
    return found


_seen: dict[object, str] = {}
"""Names that were looked up: the text of a type takes longer."""
