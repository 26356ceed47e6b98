"""The inside of one module (`module=`): which calls that is, what lies outside and is touched, and how deep calls lie.

Ops outside become stubs, one each; inputs, outputs, buffers and constants that the module touches keep their nodes.
Knows nothing of what a stub says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from torchlens.base.errors import fail, unknown
from torchlens.plan.graph import Focus
from torchlens.plan.select import Selection, origins
from torchlens.records.labels import split_pass
from torchlens.records.trace_data import TraceData

OUTSIDE = -1
# Modules named in a remedy.
HINTS = 3


@dataclass(frozen=True, slots=True)
class Boundary:
    """Flags per trace node: an op outside that feeds the module, and one that reads from it."""

    feeds: list[bool]
    reads: list[bool]


def find_focus(data: TraceData, name: str) -> Focus | None:
    """The module that a figure shows the inside of; None if that is the whole model.

    name: an address, `blocks.1`, or one call of a module, `blocks.1:2`; a leading `@` is allowed.
    Raises: UnknownNameError[module_not_found], InvalidArgumentError[module_not_called].
    """
    address, number = _split(data, name.removeprefix("@"))
    index = data.module_of.get(address)
    if index is None:
        known = [found for found in data.module_of if found]
        what = f"no module has the address {address!r}"
        raise unknown("module_not_found", what, address, known, otherwise="trace.modules lists the addresses")
    calls = data.modules[index].calls
    if not calls:
        fail("module_not_called", f"{address!r} was never called", fix=_called_below(data, index), module=address)
    if number is not None and not 1 <= number <= len(calls):
        times = "once" if len(calls) == 1 else f"{len(calls)} times"
        fix = f"pass module={address!r}" if len(calls) == 1 else f'use "{address}:1" to "{address}:{len(calls)}"'
        fail("module_not_called", f"{address!r} was called {times}: there is no call {number}", fix=fix, module=address)
    if index == 0:
        return None
    chosen = calls if number is None else (calls[number - 1],)
    levels = call_levels(data, chosen)
    kinds = data.nodes.kind
    members = (
        i for i, call in enumerate(data.nodes.call) if levels[call] != OUTSIDE and kinds[i] not in ("input", "output")
    )
    return Focus(index, chosen, tuple(members))


def _split(data: TraceData, address: str) -> tuple[str, int | None]:
    """Address and call number; the model itself is called `self`, unless a module has this name."""
    head, number = (address, None) if address in data.module_of else split_pass(address)
    return ("" if head == "self" and head not in data.module_of else head), number


def _called_below(data: TraceData, module: int) -> str:
    """What to focus on instead of a module that only holds others."""
    waiting, found = [module], list[str]()
    while waiting and len(found) < HINTS:
        current = data.modules[waiting.pop(0)]
        if current.calls:
            found.append(repr(current.address))
        else:
            waiting += current.children
    return f"focus on {' or '.join(found)}, which ran" if found else ""


def call_levels(data: TraceData, roots: Collection[int] = (0,)) -> list[int]:
    """Per call, how deep it lies below the calls that the page shows the inside of, OUTSIDE if it does not."""
    top = set(roots)
    levels: list[int] = []
    for c, call in enumerate(data.calls):
        above = OUTSIDE if call.parent is None else levels[call.parent]
        levels.append(above + 1 if above != OUTSIDE else 0 if c in top else OUTSIDE)
    return levels


def restrict(data: TraceData, selection: Selection, focus: Focus) -> tuple[Selection, Boundary]:
    """Leave on the page what belongs to the module or touches it. Linear in the trace."""
    kinds = data.nodes.kind
    inside = [False] * len(kinds)
    for i in focus.members:
        inside[i] = True
    used = [a and b for a, b in zip(selection.used, inside, strict=True)]
    feeds, reads = [False] * len(kinds), [False] * len(kinds)
    for target, refs in enumerate(data.nodes.parents):
        if selection.hidden[target] or not selection.drawn(target):
            continue
        for ref in refs:
            for source, _ in origins(data, selection, ref):
                if inside[target] and not inside[source]:
                    (feeds if kinds[source] == "op" else used)[source] = True
                elif inside[source] and not inside[target]:
                    (reads if kinds[target] == "op" else used)[target] = True
    orphans = [a and b for a, b in zip(selection.orphans, inside, strict=True)]
    return replace(selection, used=used, orphans=orphans, inside=inside), Boundary(feeds, reads)
