"""From a full drawing and a request to a folded one, with its report. The only file here that knows the options.

Deterministic but for the watchdog, which only stops a planner that runs far past its estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from torchlens.base.errors import fail, warn
from torchlens.plan.collapse import guard
from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.budget import Values, fit
from torchlens.plan.collapse.cut import Capsule, Cut
from torchlens.plan.collapse.nodes import capsule_name
from torchlens.plan.collapse.quality import AUTO, MAX, NONE, choose, readable_band
from torchlens.plan.collapse.report import CEILING, CollapsePlan, Gathered
from torchlens.plan.collapse.schedule import CollapseSchedule, Path, make_fallback, make_path, one_step
from torchlens.plan.collapse.units import Base, Units, count_units
from torchlens.plan.graph import FOLD, OUTPUTS, SEGMENT
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import DrawRequest
from torchlens.settings.deferred import Band
from torchlens.settings.evidence import ADDITIVE, FAMILIES, SOURCES
from torchlens.settings.limits import load_limits

# A drawing of this share of the full one, and above the band, is hardly folded.
NEAR_FULL = 0.80
BUDGET = "budget"
# Options that decide what there is to fold.
_CONTEXT = (
    "rolled", "depth", "module", "show_buffers", "show_orphans", "show_containers", "fold_repeats", "collapse_rules",
)  # fmt: skip


class Folded(NamedTuple):
    """A folded drawing and its report."""

    cut: Cut
    plan: CollapsePlan


class _Outcome(NamedTuple):
    board: Board
    planner: str
    path: Path | None
    reason: str
    level: float | None = None
    depth: int | None = None


def fold_drawing(base: Base, request: DrawRequest, members: Sequence[int] | None = None) -> Folded | None:
    """Fold a full drawing as `collapse=` and `fold_repeats=` say; None where nothing is to be folded.

    members: what a focused figure is about.
    Warns: collapse_budget_fallback, collapse_watchdog_fallback, collapse_pathological_skip, collapse_near_uncollapsed.
    """
    options = request.options
    mode = options.collapse
    if mode in (NONE, 0.0) and not options.fold_repeats:
        return None
    units = count_units(base)
    band = readable_band(base.data, members)
    outcome = _fold(units, request, band)
    band = mode.high if isinstance(mode, Band) else band
    plan = _report(units, request, outcome, band)
    if mode in (AUTO, MAX) and plan.nodes > band and plan.nodes > NEAR_FULL * plan.total:
        what = f"collapse={mode!r} still draws {plan.nodes} of {plan.total} nodes: little of this graph is in modules"
        warn("collapse_near_uncollapsed", what, nodes=plan.nodes, total=plan.total)
    return Folded(outcome.board.cut(), plan)


def empty_plan(
    data: TraceData, request: DrawRequest, nodes: int, members: Sequence[int] | None = None
) -> CollapsePlan | None:
    """The report of a drawing in which nothing was to be folded, None if nobody asked. members: as `fold_drawing`."""
    mode = request.options.collapse
    if mode == NONE:
        return None
    reason, band = "nothing is folded", readable_band(data, members)
    context, planner = _context(request), guard.NO_PLANNER
    return CollapsePlan(0.0, context, planner, nodes, nodes, (), (), (), (), reason, (), band, 0.0)


def planned(plan: CollapsePlan) -> CollapsePlan:
    """The report, if there was a plan. Raises: UnavailableError[collapse_plan_unavailable]."""
    if plan.reason == CEILING:
        what = "the trace has too many ops to be planned: only the outermost modules are drawn"
        fail("collapse_plan_unavailable", what, fix="draw a part with module=", reason=CEILING)
    return plan


def make_schedule(base: Base, request: DrawRequest, members: Sequence[int] | None = None) -> CollapseSchedule:
    """All steps of a drawing under the options of a request, but for its mode. Warns of nothing."""
    units = count_units(base)
    if guard.is_pathological(units, load_limits()):
        return one_step(units)
    _, path = _make_path(units, readable_band(base.data, members), request.options.fold_repeats, tells=False)
    return path.schedule()


def _fold(units: Units, request: DrawRequest, band: int) -> _Outcome:
    options, limits = request.options, load_limits()
    if guard.is_pathological(units, limits):
        guard.warn_of_pathology(units, limits)
        return _Outcome(guard.top_level(units), guard.NO_PLANNER, None, CEILING)
    if isinstance(options.collapse, Band):
        return _fit(units, request, options.collapse, band)
    planner, path = _make_path(units, band, options.fold_repeats, tells=True)
    mode = 0.0 if options.collapse == NONE else options.collapse
    found = choose(path, mode, band)
    return _Outcome(found.board, planner, path, found.reason, path.schedule().level_of(found.step))


def _make_path(units: Units, band: int, folds: bool | None, *, tells: bool) -> tuple[str, Path]:
    """Who planned, and all steps: by the simple planner where the other has too much work. tells: warns of that."""
    load, limits = guard.measure(units), load_limits()
    if guard.admits(load, limits):
        try:
            return guard.QUALITY, make_path(units, band, folds, guard.watchdog(load, limits).check)
        except guard.Abandoned as stopped:
            if tells:
                guard.warn_of_watchdog(load, limits, stopped.seconds)
    elif tells:
        guard.warn_of_budget(load, limits)
    return guard.FALLBACK, make_fallback(units, band, folds)


def _fit(units: Units, request: DrawRequest, budget: Band, band: int) -> _Outcome:
    """The page of a view that wants a number of nodes."""
    planner, folds = guard.QUALITY, request.options.fold_repeats

    def plan(folds: bool | None) -> Path | None:
        nonlocal planner
        if not guard.admits(guard.measure(units), load_limits()):
            return None
        planner, path = _make_path(units, band, folds, tells=True)
        return path

    optional = request.origin["fold_repeats"] == request.origin["collapse"]
    found = fit(units, budget, folds, _colored(units, request.options.color_by), plan, optional=optional)
    if found.path is None or found.board.count == units.total:
        planner = guard.NO_PLANNER
    level = None if found.path is None else found.path.schedule().level_of(found.step)
    return _Outcome(found.board, planner, found.path, found.reason, level, found.depth)


def _colored(units: Units, source: object) -> Values | None:
    """The values that a colour channel is to show, None without one."""
    if source is None:
        return None
    family = SOURCES.get(source) if isinstance(source, str) else None
    return Values(units, FAMILIES[family][1] if family else None, sums=source in ADDITIVE)


def _report(units: Units, request: DrawRequest, outcome: _Outcome, band: int) -> CollapsePlan:
    board, data, mode = outcome.board, units.data, request.options.collapse
    rolled = request.options.rolled
    cut = board.cut()
    modules = dict.fromkeys(data.calls[c].module for c in sorted({c for c in cut.boxed if c is not None}))
    gathered: dict[str, list[Gathered]] = {FOLD: [], SEGMENT: [], OUTPUTS: []}
    for capsule in cut.capsules:
        row = Gathered(capsule_name(data, capsule, rolled), _members(units, capsule))
        gathered[capsule.kind].append(row)
    above = board.count > band and (mode == AUTO or isinstance(mode, Band) or outcome.planner != guard.QUALITY)
    return CollapsePlan(
        BUDGET if isinstance(mode, Band) else mode,
        _context(request),
        outcome.planner,
        board.count,
        units.total,
        tuple(data.modules[m].address or "self" for m in modules),
        tuple(gathered[FOLD]),
        tuple(gathered[SEGMENT]),
        tuple(gathered[OUTPUTS]),
        outcome.reason,
        tuple(_manifest(units, board, cut, rolled)) if above else (),
        band,
        outcome.level,
        outcome.depth,
    )


def _context(request: DrawRequest) -> Mapping[str, object]:
    found: dict[str, object] = {name: getattr(request.options, name) for name in _CONTEXT}
    return MappingProxyType({**found, "theme": request.theme.name})


def _members(units: Units, capsule: Capsule) -> tuple[str, ...]:
    data = units.data
    if capsule.calls:
        return tuple(dict.fromkeys(data.modules[data.calls[c].module].address for c in capsule.calls))
    return tuple(data.nodes.label[i] for i in capsule.nodes if data.nodes.kind[i] != "buffer")


def _manifest(units: Units, board: Board, cut: Cut, rolled: bool) -> list[Mapping[str, Any]]:
    """Per node that stands for others: what it is, how many ops it hides, and the option that opens it."""
    data = units.data
    hidden: dict[tuple[str, int], int] = {}
    for i in data.op_indexes:
        if not units.base.selection.used[i]:
            continue
        call = data.nodes.call[i]
        number, box = cut.capsule_of(i, call), cut.boxed[call]
        if number is not None:
            hidden["capsule", number] = hidden.get(("capsule", number), 0) + 1
        elif box is not None and (units.kept[box] != i or box in cut.whole):
            key = "box", data.modules[data.calls[box].module].calls[0] if rolled else box
            hidden[key] = hidden.get(key, 0) + 1
    rows: list[Mapping[str, Any]] = []
    for (kind, number), ops in hidden.items():
        if kind == "capsule":
            capsule = cut.capsules[number]
            name, around = capsule_name(data, capsule, rolled), _around(units, capsule)
            address = data.modules[around].address
            what = capsule.kind
        else:
            record = data.calls[number]
            address, what = data.modules[record.module].address, "module"
            name = f"module:{address}:{record.number}"
        draw = {"module": address} if address else {"collapse": NONE}
        rows.append({"expansion_id": name, "address": address, "kind": what, "hidden_ops": ops, "draw": draw})
    return rows


def _around(units: Units, capsule: Capsule) -> int:
    """The module that opens a row: the one around its members that was called."""
    data = units.data
    call = data.calls[capsule.calls[0]].parent if capsule.calls else data.nodes.call[capsule.nodes[0]]
    return data.calls[call or 0].module
