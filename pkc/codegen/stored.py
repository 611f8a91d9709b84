"""Artifacts as bytes, for the cache: a header in JSON, then the machine code."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any, cast

from pkc.codegen.artifact import (
    Alarm,
    ArrayParameter,
    Artifact,
    Base,
    Dimension,
    Epochs,
    Field,
    HeapStride,
    Probe,
    RankField,
    Scalar,
    SignalParameter,
    TensorMaps,
    Trace,
    Wait,
    Waits,
)

_FIELDS: dict[str, type[Field]] = {
    kind.__name__: kind for kind in (TensorMaps, Base, HeapStride, Dimension, RankField, Scalar, Epochs, Alarm)
}


def pack(artifact: Artifact) -> bytes:
    """An artifact as bytes that `unpack` reads."""
    header = {name: value for name, value in asdict(artifact).items() if name != "cubin"}
    header["fields"] = [{"kind": type(field).__name__, **asdict(field)} for field in artifact.fields]
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + artifact.cubin


def unpack(data: bytes) -> Artifact:
    """The artifact that `pack` was given."""
    (length,) = struct.unpack_from("<Q", data)
    header: dict[str, Any] = {name: tuples(value) for name, value in json.loads(data[8 : 8 + length]).items()}
    header["arrays"] = tuple(ArrayParameter(**array) for array in header["arrays"])
    header["signals"] = tuple(SignalParameter(**signal) for signal in header["signals"])
    header["fields"] = tuple(_FIELDS[field.pop("kind")](**field) for field in header["fields"])
    header["waits"] = None if header["waits"] is None else _waits(header["waits"])
    header["trace"] = None if header["trace"] is None else _trace(header["trace"])
    return Artifact(cubin=data[8 + length :], **header)


def _trace(header: dict[str, Any]) -> Trace:
    points = tuple(Probe(**point) for point in header.pop("points"))
    return Trace(**header, points=points)


def _waits(header: dict[str, Any]) -> Waits:
    points = tuple(Wait(**point) for point in header.pop("points"))
    return Waits(**header, points=points)


def tuples(value: Any) -> Any:
    """Make tuples of the lists that JSON reads."""
    if isinstance(value, list):
        return tuple(map(tuples, cast(list[Any], value)))
    if isinstance(value, dict):
        return {name: tuples(inner) for name, inner in cast(dict[str, Any], value).items()}
    return value
