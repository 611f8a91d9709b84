"""The language server for `.pk` files, on pygls: what `analyse.py` and `format.py` find, as the protocol has it.

Columns of the protocol count UTF-16 units, as ours do where a line has no characters beyond the first 65,536.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pkc.diagnostics import PkcError
from pkc.editor.analyse import Problem, analyse, completions, hover
from pkc.editor.format import formatted
from pkc.editor.words import meanings
from pkc.version import VERSION

types: Any = import_module("lsprotocol.types")

_KINDS: dict[str, Any] = {
    "keyword": types.CompletionItemKind.Keyword,
    "word": types.CompletionItemKind.Function,
    "modifier": types.CompletionItemKind.Method,
}


def server() -> Any:
    """A server, to be started."""
    made: Any = import_module("pygls.lsp.server").LanguageServer("pkc", VERSION)

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: Any) -> None:
        _publish(made, params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: Any) -> None:
        _publish(made, params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: Any) -> Any:
        document, at = made.workspace.get_text_document(params.text_document.uri), params.position
        found = hover(document.source, _path(document), at.line, at.character)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, found)) if found else None

    @made.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))
    def completed(params: Any) -> list[Any]:
        document, at = made.workspace.get_text_document(params.text_document.uri), params.position
        found = completions(document.source, at.line, at.character)
        return [_item(name, what) for name, what in found]

    @made.feature(types.TEXT_DOCUMENT_FORMATTING)
    def format_document(params: Any) -> list[Any]:
        document = made.workspace.get_text_document(params.text_document.uri)
        try:
            text = formatted(document.source, _path(document))
        except PkcError:
            return []  # its diagnostics are shown
        whole = types.Range(types.Position(0, 0), types.Position(len(document.lines) + 1, 0))
        return [types.TextEdit(whole, text)] if text != document.source else []

    return made


def _item(name: str, what: str) -> Any:
    meaning = meanings().get(name) if what == "word" else None
    told = types.MarkupContent(types.MarkupKind.Markdown, meaning) if meaning else None
    return types.CompletionItem(label=name, detail=what, kind=_KINDS.get(what), documentation=told)


def _path(document: Any) -> str:
    return document.path or document.uri


def _publish(made: Any, uri: str) -> None:
    document = made.workspace.get_text_document(uri)
    found = analyse(document.source, _path(document)).problems
    shown = [_diagnostic(problem) for problem in found]
    made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=shown))


def _diagnostic(problem: Problem) -> Any:
    severity = types.DiagnosticSeverity.Error if problem.error else types.DiagnosticSeverity.Warning
    place = types.Range(types.Position(*problem.first), types.Position(*problem.last))
    return types.Diagnostic(place, problem.text, severity=severity, code=problem.code, source="pkc")
