"""Answers that a trace gives to a setting of a view, by name: `rolled: {resolve: several_passes}`.

Pure functions of the facts of a trace. A resolver says which options it answers, so that a file which asks it for
another one is refused when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from torchlens.ops.attention import FUNCTIONS, MODULE_CLASS, SOFTMAX, is_attention, role_of

if TYPE_CHECKING:
    from torchlens.records.modules import ModuleRecord
    from torchlens.records.trace_data import TraceData

# Modules that only hold others; a block has a class of its own.
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
# Parts that only attention has, and last parts of addresses beside them: they are projections of attention inside a
# module that is called so.
_PARTS = ("query", "key", "value", "qkv")
_PROJECTIONS = ("out_proj", "o_proj")


class Resolver(NamedTuple):
    """options: those whose value it may give; answer: the value on a trace, None where there is none."""

    options: tuple[str, ...]
    answer: Callable[[TraceData], object]


class Block(NamedTuple):
    """A repeated module. place: `module=` for it or its first call; number, total: which of how many alike; class_name:
    of all of these; calls: whether it is one module that repeats by its calls.
    """

    place: str
    number: int
    total: int
    class_name: str
    calls: bool = False


def several_passes(data: TraceData) -> bool:
    """Whether any op ran more than once at its place."""
    return any(data.layers[data.nodes.layer[i]].num_passes > 1 for i in data.op_indexes)


def first_attention_block(data: TraceData) -> str | None:
    """Where the first repeated block that holds attention is, as `module=` takes it."""
    found = attention_block(data)
    return found.place if found else None


RESOLVERS: dict[str, Resolver] = {
    "several_passes": Resolver(("rolled",), several_passes),
    "first_attention_block": Resolver(("module",), first_attention_block),
}


# -- attention
def has_attention(data: TraceData) -> bool:
    """Whether any op or module that ran is attention."""
    return bool(_holders(data))


def attention_block(data: TraceData) -> Block | None:
    """The first repeated block that holds attention: the outermost module of a run of siblings of one class which all
    hold some, numbered ones before such pairs as an encoder and a decoder of one class; without any, the outermost
    module that holds some and was called several times.
    """
    holders = _holders(data)
    found = [module for module in data.modules[1:] if module.index in holders and _is_block(module)]
    runs = [run for module in data.modules for run in _runs_below(data, module)]
    run_of = {index: run for run in runs if len(run) > 1 and holders.issuperset(run) for index in run}
    alike = [module for module in found if module.index in run_of]
    first = next((module for module in alike if _is_numbered(module)), alike[0] if alike else None)
    if first is not None:
        run = run_of[first.index]
        return Block(first.address, run.index(first.index) + 1, len(run), first.class_name)
    for module in found:
        if len(module.calls) > 1:
            return Block(f"{module.address}:1", 1, len(module.calls), module.class_name, calls=True)
    return None


def block_at(data: TraceData, index: int, calls: Sequence[int]) -> Block | None:
    """Which of several alike a module is, None if it stands alone. calls: those shown, one of many or all."""
    module = data.modules[index]
    if len(calls) == 1 < len(module.calls):
        number = module.calls.index(calls[0]) + 1
        return Block(f"{module.address}:{number}", number, len(module.calls), module.class_name, calls=True)
    around = data.modules[module.parent or 0]
    run = next((run for run in _runs_below(data, around) if index in run), ())
    if len(run) > 1 and _is_block(module):
        return Block(module.address, run.index(index) + 1, len(run), module.class_name)
    return None


def _is_block(module: ModuleRecord) -> bool:
    return bool(module.calls) and module.class_name not in _CONTAINERS


def _is_numbered(module: ModuleRecord) -> bool:
    return module.address[-1:].isdigit()


def _runs_below(data: TraceData, module: ModuleRecord) -> list[tuple[int, ...]]:
    """The children of a module, those of one class in a row together."""
    rows = groupby(module.children, key=lambda index: data.modules[index].class_name)
    return [tuple(row) for _, row in rows]


def _holders(data: TraceData) -> set[int]:
    """Modules that ran around an op or a module of attention, the root if nothing else."""
    found: set[int] = set()
    for i in data.op_indexes:
        module = data.calls[data.nodes.call[i]].module
        func = data.nodes.func[i]
        if func in FUNCTIONS or (func == SOFTMAX and _is_in_attention(data, module)):
            _add_with_parents(data, module, found)
    for module in data.modules:
        if _is_subject(data, module):
            _add_with_parents(data, module.parent or 0, found)
    return {index for index in found if data.modules[index].calls}


def _is_subject(data: TraceData, module: ModuleRecord) -> bool:
    """Whether a module is attention: torch's own, or a projection inside what is called attention.

    A projection need not have been called: some forwards read its weight only.
    """
    if module.class_name == MODULE_CLASS:
        return bool(module.calls)
    if role_of(module.address) not in _PARTS and module.address.rpartition(".")[2] not in _PROJECTIONS:
        return False
    return _is_in_attention(data, module.parent)


def _is_in_attention(data: TraceData, module: int | None) -> bool:
    """Whether a module, or one around it, ran and is called attention."""
    while module is not None:
        record = data.modules[module]
        if record.address and is_attention(record.address, record.class_name):
            return bool(record.calls)
        module = record.parent
    return False


def _add_with_parents(data: TraceData, module: int | None, found: set[int]) -> None:
    while module is not None and module not in found:
        found.add(module)
        module = data.modules[module].parent
