"""`TraceData` as a plain JSON document and back, without loss: the records part of a saved trace.

Generic over the record types: a column, a field or a record class that is added anywhere in `records` is carried
without a change here. Nothing is ever imported or called by a name that stands in a document, except the record
classes of this package. Torch and files are not known here.

Numbers, texts, booleans and None stand for themselves, an array for a tuple. An object with one key is anything else:

    {"f": "nan"}            a float that JSON lacks        {"l": [...]}            a list
    {"i": "0x1f"}           a very long whole number       {"d": [[key, value]]}   a mapping
    {"c": [real, imag]}     a complex number               {"s": [a, b, c]}        a slice
    {"b": "base64"}         bytes                          {"e": 0}                Ellipsis
    {"n": [name, fields, values]}  a named tuple           {"x": ...}              what the caller's hook made
    {"3": [...]}            a record of the document's type 3; fields at the end that have their default are left out

Lists of records and the node table are columns, each in the first of these forms that fits:

    {"value": v, "count": n}             n times the same value
    {"present": column, "items": column} None where not present, else the next item
    {"lengths": column, "items": column} tuples, laid end to end
    {"type": t, "columns": {...}}        records of one class, a column per field
    {"values": column, "rows": [...]}    the distinct values, and which of them each row is
    {"rows": [...]}                      one value after the other
"""

from __future__ import annotations

import base64
import json
import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, cast

from torchlens.records.flow import Branches
from torchlens.records.record_types import default_of, fields_of, is_frozen, is_record, maker_of, names_of_items
from torchlens.records.trace_data import Deferred, NodeTable, TraceData

# One JSON value: what it holds is known only to the branch that looks at it.
Json = Any
Hook = Callable[[Any, Callable[[Any], Json]], Json]

_SELF = frozenset({int, bool, str, type(None)})
# json refuses to write or read whole numbers of more decimal digits than the interpreter's limit, 4300 by default.
_LONG_BITS = 4096
_READ: Mapping[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    list: lambda value: list(list[Any].__iter__(value)),
}


def encode(data: TraceData) -> tuple[dict[str, Json], list[str]]:
    """The document of a trace, and what had to be left out of it, in words.

    Columns worked out on demand are worked out. An annotation that JSON cannot hold is left out whole; anywhere else
    None takes the place of such a value.
    """
    encoder = Encoder()
    fields: dict[str, Json] = {}
    for name in fields_of(TraceData):
        value = getattr(data, name)
        encoder.place = name
        if isinstance(value, NodeTable):
            fields[name] = {"columns": encoder.columns({key: getattr(value, key) for key in fields_of(NodeTable)})}
        elif isinstance(value, dict):
            fields[name] = encoder.notes(name, cast("dict[Any, Any]", value))
        else:
            fields[name] = encoder.field(value)
    return {"types": encoder.types, "fields": fields}, encoder.left_out


def decode(document: Mapping[str, Json]) -> TraceData:
    """The trace of a document. Raises ValueError, TypeError, LookupError or RecursionError for what is none.

    A column that the document lacks holds None in every row; a field that it lacks has its default; what this
    version does not know is ignored.
    """
    decoder = Decoder(document["types"])
    known = set(fields_of(TraceData))
    fields: dict[str, Any] = {}
    for name, value in document["fields"].items():
        if name in known:
            fields[name] = decoder.field(value)
    return TraceData(**fields)


class Encoder:
    """Makes JSON values. types: name and fields of each record class met; left_out: what JSON cannot hold.

    hook: asked first about any value that is no plain one; returns JSON, or None if it does not know it either.
    place: where the values being encoded belong, for the words of `left_out`.
    """

    def __init__(self, hook: Hook | None = None) -> None:
        self.types: list[tuple[str, list[str]]] = []
        self.left_out: list[str] = []
        self.place = ""
        self._hook = hook
        self._keys: dict[type, str] = {}
        self._shapes: dict[type, tuple[tuple[str, ...], tuple[Any, ...]]] = {}
        # Frozen records are shared by many rows; the entry keeps the record, so its id stays its own.
        self._frozen: dict[int, tuple[object, Json]] = {}

    # -- single values
    def value(self, value: Any) -> Json:
        """One value; None, with an entry in `left_out`, if nothing here can hold it."""
        kind = _kind(value)
        if kind in _SELF:
            return value if kind is not int or value.bit_length() < _LONG_BITS else {"i": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"f": repr(value)}
        if kind is tuple:
            return [self.value(item) for item in value]
        if kind is list:
            return {"l": [self.value(item) for item in value]}
        if kind in self._keys or is_record(kind):
            return self._record(value)
        made = self._hook(value, self.value) if self._hook else None
        return {"x": made} if made is not None else self._other(value)

    def _other(self, value: Any) -> Json:
        """What is neither plain nor a record. Subclasses are read as what they extend: their own code never runs."""
        kind = _kind(value)
        if _extends(kind, complex):
            return {"c": [self.value(value.real), self.value(value.imag)]}
        if kind is slice:
            return {"s": [self.value(value.start), self.value(value.stop), self.value(value.step)]}
        if value is Ellipsis:
            return {"e": 0}
        if _extends(kind, (bytes, bytearray)):
            return {"b": base64.b64encode(value).decode("ascii")}
        if _extends(kind, dict):
            return {"d": [[self.value(key), self.value(item)] for key, item in dict[Any, Any].items(value)]}
        if _extends(kind, tuple):
            items = list(tuple[Any, ...].__iter__(value))
            names = names_of_items(kind, len(items))
            return {"n": [kind.__name__, names, list(map(self.value, items))]} if names else self.value(tuple(items))
        if _extends(kind, Deferred):
            return self.value(list(value))
        for base, read in _READ.items():
            if _extends(kind, base):
                return self.value(read(value))
        if kind.__module__ == "numpy" and value.shape == () and type(value.item()).__module__ != "numpy":
            return self.value(value.item())
        self.left_out.append(f"{self.place}: {kind.__name__}")
        return None

    def _record(self, value: Any) -> Json:
        entry = self._frozen.get(id(value))
        if entry is not None:
            return entry[1]
        kind = _kind(value)
        key = self._keys.get(kind) or self._register(kind)
        names, defaults = self._shapes[kind]
        cells = [self.value(getattr(value, name)) for name in names]
        while cells and _same(cells[-1], defaults[len(cells) - 1]):
            cells.pop()
        made = {key: cells}
        if is_frozen(kind):
            self._frozen[id(value)] = (value, made)
        return made

    def _register(self, kind: type) -> str:
        names = fields_of(kind)
        self._shapes[kind] = names, tuple(default_of(kind, name) for name in names)
        key = self._keys[kind] = str(len(self.types))
        self.types.append((kind.__name__, list(names)))
        return key

    # -- many values
    def columns(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Json]:
        """Columns by name."""
        made: dict[str, Json] = {}
        for name, rows in columns.items():
            self.place = name
            made[name] = self.column(list(rows))
        return made

    def field(self, value: Any) -> Json:
        """A field of the trace: records of one class and what branches consist of as columns, the rest as a value."""
        if isinstance(value, Branches):
            parts = {"tests": list(value), "arms": value.arms, "reads": list(value.reads)}
            return {"branches": {name: self.column(rows) for name, rows in parts.items()}}
        rows = list(cast("Sequence[Any]", value)) if isinstance(value, (list, Deferred)) else None
        if rows and len(set(map(type, rows))) == 1 and is_record(_kind(rows[0])):
            return {"column": self.column(rows)}
        return self.value(value if rows is None else rows)

    def column(self, rows: list[Any]) -> Json:
        """One column."""
        kinds: set[type[object]] = set(map(type, rows))
        if len(rows) > 1 and kinds <= _SELF and len(kinds) == len(set(rows)) == 1:
            return {"value": rows[0], "count": len(rows)}
        if kinds <= {int, bool, type(None)} or (kinds <= {float, type(None)} and _all_finite(rows)):
            return {"rows": rows}
        if kinds == {str}:
            return _distinct(rows, rows)
        some = kinds - {type(None)}
        if kinds != some and len(some) == 1 and (some == {tuple} or is_record(next(iter(some)))):
            present = [row is not None for row in rows]
            return {"present": {"rows": present}, "items": self.column([row for row in rows if row is not None])}
        if kinds == {tuple}:
            inner: set[type[object]] = set(map(type, chain.from_iterable(rows)))
            some = inner - {type(None)}
            if inner <= _SELF or (len(some) == 1 and is_record(next(iter(some)))):
                items = list(chain.from_iterable(rows))
                return {"lengths": self.column(list(map(len, rows))), "items": self.column(items)}
        if len(kinds) == 1 and is_record(next(iter(kinds))):
            return self._records(rows)
        cells = [self.value(row) for row in rows]
        # Equal texts are equal values, 1 and True and 1.0 apart.
        return _distinct(cells, [repr(cell) for cell in cells])

    def _records(self, rows: list[Any]) -> Json:
        shared = {id(row): row for row in rows}
        if 2 * len(shared) <= len(rows):
            index = {key: number for number, key in enumerate(shared)}
            return {"values": self._records(list(shared.values())), "rows": [index[id(row)] for row in rows]}
        kind = _kind(rows[0])
        key = self._keys.get(kind) or self._register(kind)
        columns = {name: self.column([getattr(row, name) for row in rows]) for name in self._shapes[kind][0]}
        return {"type": key, "columns": columns}

    def notes(self, name: str, value: dict[Any, Any]) -> Json:
        """A mapping of which each entry is saved whole or not at all."""
        entries: list[list[Json]] = []
        for key, item in value.items():
            before = len(self.left_out)
            try:
                made = [self.value(key), self.value(item)]
                json.dumps(made)
                whole = len(self.left_out) == before
            except RecursionError:  # what is too deep for the writer is too deep to be saved
                made, whole = [], False
            if whole:
                entries.append(made)
            else:
                word = key if isinstance(key, str) else type(key).__name__
                self.left_out[before:] = [f"{name}[{word!r}]"]
        return {"d": entries}


class Decoder:
    """Reads JSON values. types: the record types of the document; hook: makes what its counterpart saved."""

    def __init__(self, types: Sequence[Sequence[Any]] = (), hook: Hook | None = None) -> None:
        self._makers = {str(i): maker_of(name, names) for i, (name, names) in enumerate(types)}
        self._hook = hook
        self._named: dict[tuple[str, ...], Any] = {}

    def value(self, cell: Json) -> Any:
        """One value."""
        if isinstance(cell, list):
            return tuple([self.value(item) for item in cast("list[Json]", cell)])
        if not isinstance(cell, dict):
            return cell
        ((tag, body),) = cast("dict[str, Json]", cell).items()
        maker = self._makers.get(tag)
        if maker is not None:
            return maker([self.value(item) for item in body])
        return self._tagged(tag, body)

    def _tagged(self, tag: str, body: Json) -> Any:
        if tag == "l":
            return [self.value(item) for item in body]
        if tag == "d":
            return {self.value(key): self.value(item) for key, item in body}
        if tag == "f":
            return float(body)
        if tag == "i":
            return int(body, 16)
        if tag == "c":
            return complex(*map(self.value, body))
        if tag == "s":
            return slice(*map(self.value, body))
        if tag == "e":
            return Ellipsis
        if tag == "b":
            return base64.b64decode(body, validate=True)
        if tag == "n":
            name, names, items = body
            return self._named_tuple(name, names)(*map(self.value, items))
        if tag == "x" and self._hook is not None:
            return self._hook(body, self.value)
        raise ValueError(f"{tag!r} is no kind of value")

    def _named_tuple(self, name: str, names: list[str]) -> Any:
        key = (name, *names)
        if key not in self._named:
            self._named[key] = namedtuple(name, names, rename=True)  # type: ignore[misc]
        return self._named[key]

    def field(self, cell: Json) -> Any:
        """A field of the trace: a value, a list of records or the node table."""
        stored: Mapping[str, Json] = cast("dict[str, Json]", cell) if isinstance(cell, dict) else {}
        if "column" in stored:
            return self.column(stored["column"])
        if "branches" in stored:
            parts = {name: self.column(column) for name, column in stored["branches"].items()}
            return Branches(parts["tests"], parts["arms"], reads=parts["reads"])
        if "columns" in stored:
            columns, count = self._columns(stored)
            return NodeTable(**{name: columns.get(name, [None] * count) for name in fields_of(NodeTable)})
        return self.value(cell)

    def column(self, column: Mapping[str, Json]) -> list[Any]:
        """One column. Rows that shared an object do so again."""
        if "count" in column:
            return [self.value(column["value"])] * column["count"]
        if "present" in column:
            present, items = self.column(column["present"]), self.column(column["items"])
            if sum(present) != len(items):
                raise ValueError("rows and their items differ in number")
            rest = iter(items)
            return [next(rest) if there else None for there in present]
        if "lengths" in column:
            lengths, items = self.column(column["lengths"]), self.column(column["items"])
            if sum(lengths) != len(items):
                raise ValueError("tuples and their items differ in number")
            rest = iter(items)
            return [tuple(islice(rest, length)) for length in lengths]
        if "type" in column:
            columns, _ = self._columns(column)
            make = self._makers[column["type"]]
            return [make(row) for row in zip(*columns.values(), strict=True)]
        rows: list[Json] = column["rows"]
        if "values" not in column:
            return [self.value(cell) if isinstance(cell, (list, dict)) else cell for cell in rows]
        values = self.column(column["values"])
        if rows and not 0 <= min(rows) <= max(rows) < len(values):
            raise ValueError("a row names a value that is not there")
        return [values[index] for index in rows]

    def _columns(self, table: Mapping[str, Json]) -> tuple[dict[str, list[Any]], int]:
        columns = {name: self.column(column) for name, column in table["columns"].items()}
        lengths = set(map(len, columns.values()))
        if len(lengths) > 1:
            raise ValueError("the columns of a table differ in length")
        return columns, lengths.pop() if lengths else 0


# -- help


def _kind(value: object) -> type[object]:
    return type(value)


def _extends(kind: type[object], base: type | tuple[type, ...]) -> bool:
    return issubclass(kind, base)


def _same(cell: Json, default: Any) -> bool:
    """Whether a cell stands for the default, of its very type."""
    if default == () and type(default) is tuple:
        return cell == []
    return type(cell) in _SELF and type(cell) is type(default) and cell == default


def _distinct(cells: list[Json], keys: list[str]) -> Json:
    """A column of cells, told apart by their keys; by distinct values where that is shorter."""
    distinct = dict(zip(keys, cells, strict=True))
    if 2 * len(distinct) > len(cells):
        return {"rows": cells}
    index = {key: number for number, key in enumerate(distinct)}
    return {"values": {"rows": list(distinct.values())}, "rows": [index[key] for key in keys]}


def _all_finite(rows: list[Any]) -> bool:
    return all(row is None or math.isfinite(row) for row in rows)
