"""The language server, as an editor speaks to it: a process, and a client without a window."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).parents[2]
WRONG = """\
kernel copy(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 64)):
        B[m] = silu(A[m])
"""
RIGHT = WRONG.replace("silu(A[m])", "A[m]+A[m]")


async def session(folder: Path) -> None:
    client = LanguageClient("test", "1")
    published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # pyright: ignore[reportUntypedFunctionDecorator]
    def _(params: types.PublishDiagnosticsParams) -> None:
        published.put_nowait(params)

    process = sys.executable, "-m", "pkc", "lsp"
    await client.start_io(*process, env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)})
    root = folder.as_uri()
    given = types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=root)
    told = await client.initialize_async(given)
    assert told.capabilities.hover_provider and told.capabilities.completion_provider
    uri = (folder / "copy.pk").as_uri()
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "pk", 1, WRONG)))
    (found,) = (await asyncio.wait_for(published.get(), 60)).diagnostics
    assert found.severity == types.DiagnosticSeverity.Error and found.code and "silu" in found.message
    assert (found.range.start.line, found.range.start.character) == (2, 15)

    document = types.VersionedTextDocumentIdentifier(2, uri)
    change = types.TextDocumentContentChangeWholeDocument(RIGHT)
    client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
    assert not (await asyncio.wait_for(published.get(), 60)).diagnostics

    this = types.TextDocumentIdentifier(uri)
    hover = await client.text_document_hover_async(types.HoverParams(this, types.Position(2, 15)))
    assert hover is not None and isinstance(hover.contents, types.MarkupContent)
    assert "private" in hover.contents.value and "load of `A`: by" in hover.contents.value
    listed = await client.text_document_completion_async(types.CompletionParams(this, types.Position(2, 8)))
    assert isinstance(listed, list) and {"rowsum", "blocks", "B"} <= {item.label for item in listed}
    (word,) = [item for item in listed if item.label == "blocks"]
    assert isinstance(word.documentation, types.MarkupContent) and "blocks(M, 128)" in word.documentation.value
    options = types.FormattingOptions(tab_size=4, insert_spaces=True)
    edits = await client.text_document_formatting_async(types.DocumentFormattingParams(this, options))
    assert edits is not None and [edit.new_text for edit in edits] == [RIGHT.replace("+", " + ")]
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    assert not list(folder.glob("pkc-report-*")), "it ends without an error"


def test_a_session(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(session(tmp_path), 120))
