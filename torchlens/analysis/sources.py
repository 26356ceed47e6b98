"""Parsed source files: which expression an instruction came from, and what stands around it.

Each file is parsed once per process. Knows code objects and syntax trees only; what a test means is told in
`constructs`.
"""

from __future__ import annotations

import ast
import linecache
import os
import tokenize
import types
import warnings
from collections.abc import Iterator
from dis import opname
from pathlib import Path

Span = tuple[int, int, int, int]  # line, end line, column, end column; columns in bytes, as the compiler counts
_MOST_FILES = 256
_PLAIN = ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "BINARY_OP", "COMPARE_OP")
_parsed: dict[str, tuple[object, Source | None]] = {}


class Source:
    """One file. above: per syntax node the one around it and the field it sits in."""

    def __init__(self, text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's literals; said when the file was imported
            self.tree = ast.parse(text)
        self.above: dict[ast.AST, tuple[ast.AST, str]] = {}
        self._lines = text.split("\n")
        self._at: dict[Span, ast.AST] = {}
        self._index()

    def _index(self) -> None:
        """Outer nodes first, so that of nodes with one span the innermost is found."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            span = span_of(node)
            if span is not None:
                self._at[span] = node
                if isinstance(node, ast.Attribute) and node.value.lineno != node.end_lineno:
                    self._index_multiline(node, span)
            for child, field in _children(node):
                self.above[child] = (node, field)
                waiting.append(child)

    def _index_multiline(self, node: ast.Attribute, span: Span) -> None:
        """The compiler moves an attribute on a later line, and a call of it, to where its name begins."""
        start = span[3] - len(node.attr.encode())
        self._at[span[1], span[1], start, span[3]] = node
        call, field = self.above[node]
        if isinstance(call, ast.Call) and field == "func" and call.end_lineno and call.end_col_offset:
            self._at[span[1], call.end_lineno, start, call.end_col_offset] = call

    def exact(self, span: Span) -> ast.AST | None:
        """The innermost node with exactly this span."""
        return self._at.get(span)

    def around(self, span: Span) -> ast.AST:
        """The innermost node whose span holds this one."""
        node: ast.AST = self.tree
        while (inner := next((n for n in _inner(node) if _holds(n, span)), None)) is not None:
            node = inner
        return node

    def is_elif(self, node: ast.If) -> bool:
        """Whether an `if` statement is written `elif`; the tree has it as the only statement of an `else`."""
        outer, field = self.above[node]
        if not isinstance(outer, ast.If) or field != "orelse" or len(outer.orelse) != 1:
            return False
        line = self._lines[node.lineno - 1].encode()
        return line.startswith(b"elif", node.col_offset)

    def fits(self, code: types.CodeType) -> bool:
        """Whether a code object came from this text: each call, operator and comparison is where it says.

        A file that was edited after it was imported fails this, unless the edit moved nothing.
        """
        bytecode = code.co_code
        return all(
            span is None or span in self._at
            for k, span in enumerate(spans_of(code))
            if opname[bytecode[2 * k]] in _PLAIN
        )


def source_of(filename: str) -> Source | None:
    """The parsed file, parsed again only if it has changed; None without one, or if it is not Python."""
    stamp: object
    try:
        status = Path(filename).stat()
        stamp, on_disk = (status.st_mtime_ns, status.st_size), True
    except (OSError, ValueError):
        # A cell of a notebook: its text is in memory only.
        entry = linecache.cache.get(filename, ())
        stamp, on_disk = "".join(entry[2]) if len(entry) == 4 else "", False
    known = _parsed.get(filename)
    if known is None or known[0] != stamp:
        if len(_parsed) >= _MOST_FILES:
            del _parsed[next(iter(_parsed))]
        known = _parsed[filename] = (stamp, _parse(filename if on_disk else None, str(stamp)))
    return known[1]


def _parse(filename: str | None, text: str) -> Source | None:
    try:
        if filename is not None:
            if os.fspath(filename).endswith((".pyc", ".so")):
                return None
            with tokenize.open(filename) as file:
                text = file.read()
        return Source(text) if text else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def spans_of(code: types.CodeType) -> list[Span | None]:
    """Per instruction unit (two bytes) where it stands in the source; None where the compiler left nothing."""
    return [None if None in place else place for place in code.co_positions()]  # type: ignore[misc]


def span_of(node: ast.AST) -> Span | None:
    """Where a node stands; None for those without a place, such as a comprehension's `for`."""
    if getattr(node, "end_col_offset", None) is None:
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset  # type: ignore[attr-defined]


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            for item in value:  # type: ignore[misc]
                if isinstance(item, ast.AST):
                    yield item, field
        elif isinstance(value, ast.AST) and value._attributes + value._fields:  # not the shared `Load()`, `Add()`
            yield value, field


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """Children; of those without a place, their children."""
    for child, _ in _children(node):
        if span_of(child) is None:
            yield from (below for below, _ in _children(child))
        else:
            yield child


def _holds(node: ast.AST, span: Span) -> bool:
    own = span_of(node)
    return own is not None and (own[0], own[2]) <= (span[0], span[2]) and (span[1], span[3]) <= (own[1], own[3])
