"""Reads the attributes of nodes and of the graph back from DOT text, as an engine does: the graph-wide ones first."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NODE = re.compile(r"^ *n\d+ \[(?=id=)")
_PAIR = re.compile(r'([A-Za-z]+)=(?:"((?:\\.|[^"\\])*)"|([^\s"<\]]+))')


def nodes(document: str) -> dict[str, dict[str, str]]:
    """Id of a node -> its attributes, the graph-wide ones included; `label` is HTML as it is written."""
    common: dict[str, str] = {}
    found: dict[str, dict[str, str]] = {}
    for line in document.splitlines():
        if line.startswith(" node ["):
            common = _attributes(line)
        elif _NODE.match(line):
            own = _attributes(line)
            found[own["id"]] = {**common, **own}
    return found


def graph(document: str) -> dict[str, str]:
    """The attributes of the graph itself."""
    (line,) = [line for line in document.splitlines() if line.startswith(" graph [id=")]
    return _attributes(line)


def rows(label: str) -> list[str]:
    """The rows of a node's label, without markup."""
    return [re.sub(r"<[^>]*>", "", row) for row in re.findall(r"<TR>(.*?)</TR>", label)]


def _attributes(line: str) -> dict[str, str]:
    label, rest = _without_label(line)
    found = {match[1]: match[2] if match[2] is not None else match[3] for match in _PAIR.finditer(rest)}
    return {**found, **({"label": label} if label else {})}


def _without_label(line: str) -> tuple[str, str]:
    """The HTML label of a line, whose angle brackets are balanced, and the line without it."""
    start = line.find(" label=<")
    if start < 0:
        return "", line
    begin = start + len(" label=")
    end = next(_ends(line, begin))
    return line[begin + 1 : end], line[:start] + line[end + 1 :]


def _ends(line: str, begin: int) -> Iterator[int]:
    depth = 0
    for place in range(begin, len(line)):
        depth += {"<": 1, ">": -1}.get(line[place], 0)
        if depth == 0:
            yield place
