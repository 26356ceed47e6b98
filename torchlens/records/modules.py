"""Modules of the model and the calls that ran them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ModuleRecord:
    """One module object.

    address: first dotted path, "" for the root; aliases: its other paths; parent: index of the enclosing module or
    None for the root; calls: indexes into `TraceData.calls`, empty if it never ran; params and buffers: indexes of the
    ones it owns itself; registered: False for a module met only by running (kept in a plain list); qualified_name: of
    the class, with its Python module, empty if that was not recorded.
    """

    index: int
    address: str
    aliases: tuple[str, ...]
    class_name: str
    parent: int | None
    children: tuple[int, ...]
    training: bool
    calls: tuple[int, ...]
    params: tuple[int, ...]
    buffers: tuple[int, ...]
    registered: bool = True
    qualified_name: str = ""


@dataclass(slots=True)
class ModuleCall:
    """One run of a module's `__call__`.

    number: 1-based per address; parent: index of the enclosing call, None for the root call; ops: node indexes that
    the module ran itself (not in inner calls), in order; span: first and one past the last node index recorded while
    it was active; outputs: (node, output index) of the tensors it returned; completed: False if an exception left it.
    """

    index: int
    module: int
    number: int
    parent: int | None
    ops: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]
    span: tuple[int, int]
    completed: bool = True
