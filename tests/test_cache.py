"""The cache on disk, also with many processes at once."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from pkc import cache


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_is_put_is_got() -> None:
    name = cache.key("a", b"b")
    assert cache.get(name) is None
    cache.put(name, b"content")
    cache.put(cache.key("other"), b"")
    assert cache.get(name) == b"content"
    assert cache.get(cache.key("other")) == b""


def test_keys_depend_on_every_part_and_on_the_bounds_between_them() -> None:
    assert len({cache.key("ab"), cache.key("a", "b"), cache.key("b", "a"), cache.key("ab", "")}) == 4


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"X", lambda _: b""])
def test_a_damaged_file_is_missing(place: Path, damage: object) -> None:
    cache.put("name", b"content")
    path = place / "name"
    path.write_bytes(damage(path.read_bytes()))  # pyright: ignore
    assert cache.get("name") is None
    cache.put("name", b"content")
    assert cache.get("name") == b"content"


def test_a_file_of_another_name_is_missing(place: Path) -> None:
    cache.put("name", b"content")
    (place / "name").rename(place / "other")
    assert cache.get("other") is None
    cache.put("other", b"its own")
    assert cache.get("other") == b"its own"


def test_a_digest_is_of_the_name_and_of_the_content(place: Path) -> None:
    cache.put("nam", b"econtent")
    (place / "nam").rename(place / "name")
    assert cache.get("name") is None


def test_nothing_else_is_left(place: Path) -> None:
    cache.put("name", b"content")
    assert [path.name for path in place.iterdir()] == ["name"]


def test_no_place_to_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    cache.put("name", b"content")
    assert cache.get("name") is None


def test_the_usual_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PKC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "pkc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.folder() == tmp_path / "home" / ".cache" / "pkc"


def test_the_longest_unused_go_first(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    for at, name in enumerate("abc"):
        cache.put(name, bytes(1000))
        os.utime(place / name, (at, at))
    cache.get("a")
    monkeypatch.setattr(cache, "MOST_BYTES", 3500)
    cache.put("d", bytes(1000))
    assert {path.name for path in place.iterdir()} == {"a", "c", "d"}


def _use(process: int) -> int:
    """Put and get the same few names over and over. How often `get` gave neither all of the content nor `None`."""
    wrong = 0
    for number in range(60):
        name = f"name{(number + process) % 3}"
        content = name.encode() * 20000
        cache.put(name, content)
        wrong += cache.get(name) not in (content, None)
    return wrong


def test_many_processes(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_use, range(4)) == [0, 0, 0, 0]
    assert {path.name for path in place.iterdir()} == {"name0", "name1", "name2"}
    assert all(cache.get(f"name{i}") == f"name{i}".encode() * 20000 for i in range(3))
