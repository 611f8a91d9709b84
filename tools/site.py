"""What mkdocs does with the pages of `docs/` beside drawing them: links out of the folder lead to copies of the files.

`mkdocs build --strict` in the root of the repository makes the site; the extra `docs` has what it needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
COPIES = "files"
"""The folder of the site that has the copies."""

_KINDS = {".py": "python", ".pk": "python", ".toml": "toml", ".cpp": "cpp", ".h": "cpp"}


def outside(page: Path, text: str) -> Iterator[tuple[str, Path]]:
    """The links of a page that lead out of `docs`, with the files that they name."""
    for target, _ in LINK.findall(text):
        found = (page.parent / target).resolve()
        if not found.is_relative_to(DOCS):
            yield target, found


def copy_of(path: Path) -> str:
    """The page of the site that shows a file or a folder."""
    return f"{COPIES}/{path.relative_to(ROOT)}.md"


def shown(path: Path) -> str:
    """A file as a page; a folder as a list of its files."""
    name = path.relative_to(ROOT)
    if path.is_dir():
        lines = (f"- `{found.name}`" for found in sorted(path.iterdir()) if not found.name.startswith(("_", ".")))
        return f"# {name}\n\n" + "\n".join(lines) + "\n"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        # Its own links are those of the repository.
        return LINK.sub(r"](#)", re.sub(r"\]: \S+", "]: #", text)).replace("](#)", "]")
    return f"# {name}\n\n````{_KINDS.get(path.suffix, '')}\n{text}````\n"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each file that a page of `docs` links to."""
    from mkdocs.structure.files import File

    added: dict[str, Path] = {}
    for page in sorted(DOCS.rglob("*.md")):
        for _, path in outside(page, page.read_text(encoding="utf-8")):
            added[copy_of(path)] = path
    for name, path in added.items():
        files.append(File.generated(config, name, content=shown(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Let links out of `docs` lead to the copies."""
    if page.file.src_uri.startswith(f"{COPIES}/"):
        return markdown
    here = DOCS / page.file.src_uri
    for target, path in outside(here, markdown):
        to = os.path.relpath(DOCS / copy_of(path), here.parent)
        markdown = re.sub(rf"\]\({re.escape(target)}(#[^)\s]*)?\)", f"]({to})", markdown)
    return markdown
