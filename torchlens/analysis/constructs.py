"""What the source says of a test: which construct asked, by way of which `not`, `and`, `or`, and which arms it has.

Works on code objects and their syntax trees alone; what ran is the business of `branches`.
"""

from __future__ import annotations

import ast
import sys
import types
from dis import opname
from typing import NamedTuple

from torchlens.analysis.sources import Source, Span, source_of, spans_of
from torchlens.capture import callsite
from torchlens.records.flow import ELIF, ELSE, THEN

TEST, OTHERWISE = -2, -1  # positions in a construct beside its bodies 0, 1, ...
_WRAPPERS = ("bool", "any", "all")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BETWEEN = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "COPY", "SWAP", "PRECALL", "TO_BOOL", "STORE_FAST"))
# From 3.12 on only generator expressions have a frame of their own.
_FRAMED = _COMPREHENSIONS if sys.version_info < (3, 12) else (ast.GeneratorExp,)


class Place(NamedTuple):
    """One ring around an instruction: the construct, its body (`TEST`, `OTHERWISE` or a number), the line of that."""

    root: ast.AST
    position: int
    line: int


class Use(NamedTuple):
    """A truth value on its way to the construct that asks for it.

    root: what the construct's evaluations are told apart by, the first `if` of a chain; None for a bare bool;
    position: which test of the chain; steps: `not`, `any`, `all`, `and` and `or` where
    operands follow, `unknown` where something else counts; frames:
    comprehension frames between the conversion and the construct; line: of the construct; then, otherwise: names of
    the arms, "" where there is none or a later test decides.
    """

    construct: str
    root: ast.AST | None
    position: int
    steps: tuple[str, ...]
    notes: tuple[str, ...]
    frames: int
    line: int
    then: str = ""
    otherwise: str = ""

    def settle(self, value: bool | None) -> tuple[bool | None, bool]:
        """Truth of the whole test if this was its last conversion, None if unknown, and whether no other can follow."""
        final = True
        for step in self.steps:
            if step == "not":
                value = None if value is None else not value
            elif step == "unknown" or (step == "and" and value is not False) or (step == "or" and value is not True):
                value = None
            elif (step == "any" and value is not True) or (step == "all" and value is not False):
                final = False
        return value, final and value is not None


class Conversion(NamedTuple):
    """A place where a tensor becomes a bool.

    uses: the construct that asks, or those that ask for the name it was given; order: of the operand in its test;
    repeats: one evaluation may convert several tensors here.
    """

    uses: tuple[Use, ...]
    file: str
    line: int
    order: tuple[int, int]
    repeats: bool


class _Read(NamedTuple):
    """A code object with its source; spans: per instruction unit. Its bytecode is a copy each time it is asked for."""

    source: Source
    spans: list[Span | None]
    bytecode: bytes


class Reader:
    """Reads places of code objects, each once. Code is told apart by id: whoever asks keeps it alive."""

    def __init__(self) -> None:
        self._sources: dict[int, _Read | None] = {}
        self._paths: dict[tuple[int, int], tuple[Place, ...]] = {}
        self._conversions: dict[tuple[int, int], Conversion | None] = {}
        self._names: dict[ast.AST, dict[str, tuple[int, list[ast.Name]]]] = {}

    def _source(self, code: types.CodeType) -> _Read | None:
        if id(code) not in self._sources:
            internal = callsite.is_internal(code.co_filename)
            source = None if internal else source_of(code.co_filename)
            fits = source is not None and source.fits(code)
            known = _Read(source, spans_of(code), code.co_code) if source is not None and fits else None
            self._sources[id(code)] = known
        return self._sources[id(code)]

    def path(self, code: types.CodeType, offset: int) -> tuple[Place, ...]:
        """The constructs around an instruction, innermost first; none without source."""
        key = (id(code), offset)
        if key not in self._paths:
            found = self._source(code)
            span = found.spans[offset // 2] if found else None
            self._paths[key] = () if found is None or span is None else _path(found.source, span)
        return self._paths[key]

    def conversion(self, code: types.CodeType, offset: int) -> Conversion | None:
        """What asked for a bool at an instruction; None without source, or where the compiler left no place."""
        key = (id(code), offset)
        if key not in self._conversions:
            self._conversions[key] = self._convert(code, offset)
        return self._conversions[key]

    def _convert(self, code: types.CodeType, offset: int) -> Conversion | None:
        found = self._source(code)
        if found is None:
            return None
        source = found.source
        leaf, note, known = _leaf(found, offset // 2)
        if leaf is None:
            return None
        start = ("any",) if note in ("any", "in") else ("all",) if note in ("all", "compare") else ()
        start += ("unknown",) * (not known)
        if isinstance(leaf, ast.Compare) and isinstance(leaf.ops[0], ast.NotIn):
            start += ("not",)
        inverted = ("not",) if start[-1:] == ("not",) else ()
        uses = self._uses(source, leaf, start, ((note,) if note else ()) + inverted)
        repeats = any(step in ("any", "all") for step in uses[0].steps)
        return Conversion(uses, code.co_filename, leaf.lineno, (leaf.lineno, leaf.col_offset), repeats)

    def _uses(self, source: Source, leaf: ast.expr, steps: tuple[str, ...], notes: tuple[str, ...]) -> tuple[Use, ...]:
        """The construct around a value, else those that test the only variable it is stored in."""
        if notes == ("call",):  # what it makes of the value is its own business
            return (Use("bool", None, 0, (), (), 0, leaf.lineno),)
        use, end = _climb(source, leaf, steps, notes)
        statement, field = source.above.get(end, (None, ""))
        if use.root is None and field == "value" and isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if len(targets) == 1 and isinstance(targets[0], ast.Name):
                loads = self._loads_of(source, targets[0])
                tested = [_climb(source, name, use.steps, (*use.notes, "flag"))[0] for name in loads]
                return tuple(found for found in tested if found.root is not None) or (use,)
        return (use,)

    def _loads_of(self, source: Source, target: ast.Name) -> list[ast.Name]:
        """Where a variable of a function is read, if it is assigned once."""
        function: ast.AST | None = target
        while function is not None and not isinstance(function, _FUNCTIONS):
            function = source.above.get(function, (None, ""))[0]
        if function is None:
            return []
        if function not in self._names:
            self._names[function] = _names_in(function)
        stores, loads = self._names[function][target.id]
        return loads if stores == 1 else []


def _leaf(read: _Read, at: int) -> tuple[ast.expr | None, str, bool]:
    """The expression converted at an instruction, how if not by plain truth, and whether it is surely that operand.

    A jump is placed at its operand or, before 3.12, at the whole construct; the instruction before it made the operand.
    """
    source, spans, bytecode = read
    operation = opname[bytecode[2 * at]]
    own = None if spans[at] is None else source.exact(spans[at])  # type: ignore[arg-type]
    if isinstance(own, ast.Call) and operation.startswith(("CALL", "PRECALL")):  # 3.11 may call in the latter
        name = own.func.id if isinstance(own.func, ast.Name) else ""
        return own, name if name in _WRAPPERS else "call", True
    if isinstance(own, ast.Compare) and operation == "CONTAINS_OP":
        return own, "in", True
    if not operation.startswith(("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT", "COMPARE_OP")):
        return (own, "call", True) if isinstance(own, ast.expr) else (None, "", False)
    before = at - 1
    while before > 0 and opname[bytecode[2 * before]] in _BETWEEN:
        before -= 1
    for span in (spans[at],) if operation == "COMPARE_OP" else (spans[before], spans[at]):
        node = None if span is None else source.exact(span)
        if isinstance(node, ast.expr) and _asks_truth(source, node):
            chained = isinstance(node, ast.Compare) and len(node.ops) > 1
            return node, "compare" if chained else "", True
    test = getattr(own, "test", None)
    if isinstance(own, ast.UnaryOp):
        test = own.operand
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return (test, "", not isinstance(test, ast.BoolOp)) if isinstance(test, ast.expr) else (None, "", False)


def _asks_truth(source: Source, node: ast.expr) -> bool:
    """Whether what is around an expression asks whether it is true; so does a chained comparison of its links."""
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return True
    above, field = source.above[node]
    if isinstance(above, ast.BoolOp):
        return True
    if isinstance(above, ast.UnaryOp):
        return isinstance(above.op, ast.Not)
    if isinstance(above, (ast.NamedExpr, ast.IfExp)) and field in ("value", "body", "orelse"):
        return _asks_truth(source, above)
    return field in ("test", "ifs", "guard")


def _climb(source: Source, node: ast.expr, steps: tuple[str, ...], notes: tuple[str, ...]) -> tuple[Use, ast.AST]:
    """From a value out to the construct that asks for it; also gives the outermost expression with that truth."""
    way, seen, frames, here = list(steps), list(notes), 0, node
    line = node.lineno
    while True:
        above, field = source.above[here]
        if isinstance(above, ast.BoolOp):
            name = "and" if isinstance(above.op, ast.And) else "or"
            seen.append(name)
            way += [name] * (above.values[-1] is not here)
        elif isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
            seen.append("not")
            way.append("not")
        elif (wrapper := _wrapper(above, here)) and (wrapper == "bool" or isinstance(here, _COMPREHENSIONS)):
            seen.append(wrapper)
            way += [wrapper] * (wrapper != "bool")
        elif isinstance(above, _COMPREHENSIONS) and field == "elt" and _wrapper(source.above[above][0], above):
            frames += isinstance(above, _FRAMED)
        elif isinstance(above, (ast.List, ast.Tuple)) and _wrapper(source.above[above][0], above):
            way.append("unknown")  # all its members are converted before one of them counts
            seen.append(_wrapper(source.above[above][0], above))
            above = source.above[above][0]
        elif not (isinstance(above, ast.NamedExpr) and field == "value") and not (
            isinstance(above, ast.IfExp) and field in ("body", "orelse")
        ):
            break
        here = above
    if isinstance(above, ast.comprehension) and field == "ifs" and above.ifs[-1] is not here:
        way.append("and")
    return _use(source, above, field, tuple(way), tuple(seen), frames) or Use(
        "bool", None, 0, tuple(way), tuple(seen), 0, line
    ), here


def _wrapper(call: ast.AST, argument: ast.AST) -> str:
    """`bool`, `any` or `all` if a call of it has this one argument."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args == [argument]:
        return call.func.id if call.func.id in _WRAPPERS else ""
    return ""


def _use(
    source: Source, asks: ast.AST, field: str, steps: tuple[str, ...], notes: tuple[str, ...], frames: int
) -> Use | None:
    if field == "test" and isinstance(asks, ast.If):
        root, position = _chain(source, asks)
        decided = not (asks.orelse and isinstance(asks.orelse[0], ast.If) and source.is_elif(asks.orelse[0]))
        otherwise = ELSE if asks.orelse and decided else ""
        construct, then = ("elif", ELIF) if position else ("if", THEN)
        return Use(construct, root, position, steps, notes, frames, asks.lineno, then, otherwise)
    if field == "test" and isinstance(asks, ast.While):
        return Use("while", asks, 0, steps, notes, frames, asks.lineno, THEN, ELSE if asks.orelse else "")
    if field == "test" and isinstance(asks, ast.IfExp):
        return Use("ternary", asks, 0, steps, notes, frames, asks.lineno, THEN, ELSE)
    if field == "test" and isinstance(asks, ast.Assert):
        return Use("assert", asks, 0, steps, notes, frames, asks.lineno)
    if field == "ifs" and isinstance(asks, ast.comprehension):
        return Use("filter", asks, 0, steps, notes, frames, asks.ifs[0].lineno, THEN)
    if field == "guard" and isinstance(asks, ast.match_case):
        return Use("match", asks, 0, steps, notes, frames, asks.pattern.lineno, THEN)
    return None


def _chain(source: Source, node: ast.If) -> tuple[ast.If, int]:
    """The first `if` of a chain and the number of `elif` steps to this one."""
    position = 0
    while source.is_elif(node):
        outer = source.above[node][0]
        assert isinstance(outer, ast.If)
        node, position = outer, position + 1
    return node, position


def _path(source: Source, span: Span) -> tuple[Place, ...]:
    places: list[Place] = []
    node = source.exact(span) or source.around(span)
    while node in source.above:
        above, field = source.above[node]
        if isinstance(above, ast.If):
            inner_elif = field == "orelse" and isinstance(node, ast.If) and source.is_elif(node)
            if not inner_elif:  # else the chain has been met already
                root, position = _chain(source, above)
                where = TEST if field == "test" else position if field == "body" else OTHERWISE
                places.append(Place(root, where, above.lineno))
        elif isinstance(above, (ast.While, ast.IfExp, ast.Assert)) and field in ("test", "body", "orelse"):
            where = TEST if field == "test" else 0 if field == "body" else OTHERWISE
            places.append(Place(above, where, above.lineno))
        elif isinstance(above, ast.match_case) and field in ("guard", "body"):
            places.append(Place(above, TEST if field == "guard" else 0, above.pattern.lineno))
        elif isinstance(above, ast.comprehension) and field == "ifs":
            places.append(Place(above, TEST, node.lineno))  # type: ignore[attr-defined]
        elif isinstance(above, _COMPREHENSIONS) and field in ("elt", "key", "value"):
            filters = [part for part in above.generators if part.ifs]
            places += [Place(part, 0, part.ifs[0].lineno) for part in reversed(filters)]
        node = above
    return tuple(places)


def _names_in(function: ast.AST) -> dict[str, tuple[int, list[ast.Name]]]:
    """Per variable how often the function assigns it and where it reads it; other scopes inside are left out."""
    names: dict[str, tuple[int, list[ast.Name]]] = {}
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        stored = _stored(node)
        if stored:
            names[stored] = (names.get(stored, (0, []))[0] + 1, names.get(stored, (0, []))[1])
        elif isinstance(node, ast.Name):
            names.setdefault(node.id, (0, []))[1].append(node)
        if isinstance(node, (ast.Global, ast.Nonlocal)):  # anybody may assign it
            names.update({name: (2, []) for name in node.names})
        if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    for _, loads in names.values():
        loads.sort(key=lambda name: (name.lineno, name.col_offset))
    return names


def _stored(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef, ast.ClassDef)):
        return node.name or ""
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0]
    return ""
