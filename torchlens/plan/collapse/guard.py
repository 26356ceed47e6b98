"""Keeps the planner's work bounded: an estimate before it starts, a simpler planner beyond the budget, a watchdog.

The limits are data (`conf/collapse/limits.yaml`). Every degradation is disclosed by a warning. Knows nothing of what
a good plan is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torchlens.base.errors import warn
from torchlens.plan.collapse.board import Board
from torchlens.plan.collapse.units import Units
from torchlens.settings.limits import Limits

QUALITY, FALLBACK, NO_PLANNER = "quality", "linear_fallback", "none"
_OFF = ("", "0", "false", "no", "off")


class Load(NamedTuple):
    """How much there is to plan. units: of the full drawing; widest: the most of them directly in one module call."""

    units: int
    widest: int

    def predicted_s(self, limits: Limits) -> float:
        """Seconds that the quality planner is expected to take."""
        work = self.units**limits.units_exponent * max(self.widest, 1) ** limits.width_exponent
        return limits.coefficient_ms * work / 1000


class Abandoned(Exception):  # noqa: N818 - no error: the fallback takes over
    """The quality planner ran past the watchdog. seconds: how long it had run."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"abandoned after {seconds:.1f} s")
        self.seconds = seconds


@dataclass(slots=True)
class Watchdog:
    """Raises `Abandoned` when asked after its time. limit_s: None for never."""

    limit_s: float | None
    started: float

    def check(self) -> None:
        """Ask."""
        spent = time.monotonic() - self.started
        if self.limit_s is not None and spent > self.limit_s:
            raise Abandoned(spent)


def measure(units: Units) -> Load:
    """The load of a drawing."""
    owner, hidden = units.base.groups.owner, units.base.selection.hidden
    widest = 0
    for own, below in zip(units.own, units.below, strict=True):
        widest = max(widest, len(below) + sum(owner[i] >= 0 and not hidden[i] for i in own))
    return Load(units.total, widest)


def is_pathological(units: Units, limits: Limits) -> bool:
    """Whether the trace holds so many ops that none of the planners is tried."""
    return len(units.data.op_indexes) > limits.pathological_factor * limits.max_units


def admits(load: Load, limits: Limits) -> bool:
    """Whether the quality planner may start."""
    return load.units <= limits.max_units and load.predicted_s(limits) <= limits.budget_s


def watchdog(load: Load, limits: Limits, environment: Mapping[str, str] | None = None) -> Watchdog:
    """A running watchdog; one that never barks in CI, in deterministic runs and where it is switched off."""
    env = os.environ if environment is None else environment
    off = any(env.get(name, "").lower() not in _OFF for name in ("CI", "TORCHLENS_DETERMINISTIC"))
    off = off or (env.get("TORCHLENS_COLLAPSE_WATCHDOG") or "1").lower() in _OFF  # empty is not set
    limit = max(limits.watchdog_s, limits.watchdog_factor * load.predicted_s(limits))
    return Watchdog(None if off else limit, time.monotonic())


def top_level(units: Units) -> Board:
    """The drawing with every module directly below the page's top as one box: all that a pathological trace gets.

    Where a rule keeps such a module open, the modules in it are boxes.
    """
    board = Board(units)
    levels, calls, stays = units.base.levels, units.data.calls, units.base.rules.stays
    tops: list[int] = []
    is_open = [level == 0 for level in levels]
    for c, call in enumerate(calls):
        if call.parent is not None and is_open[call.parent]:
            is_open[c] = call.module in stays
            tops += [] if is_open[c] or units.inside[c] <= 1 else [c]
    board.box(tops, whole=True)
    return board


# -- disclosure
def warn_of_budget(load: Load, limits: Limits) -> None:
    """Warns: collapse_budget_fallback."""
    predicted = load.predicted_s(limits)
    over = (
        f"{load.units:,} units are more than {limits.max_units:,}"
        if load.units > limits.max_units
        else f"planning {load.units:,} units would take {predicted:.0f} s, more than {limits.budget_s:g} s"
    )
    what = f"{over}: the drawing is folded by the simple planner, largest modules first"
    warn("collapse_budget_fallback", what, units=load.units, widest=load.widest, predicted_s=predicted)


def warn_of_watchdog(load: Load, limits: Limits, seconds: float) -> None:
    """Warns: collapse_watchdog_fallback."""
    predicted = load.predicted_s(limits)
    what = (
        f"planning {load.units:,} units (widest group {load.widest:,}) took more than {seconds:.1f} s where "
        f"{predicted:.1f} s were predicted: the drawing is folded by the simple planner"
    )
    units, widest = load
    warn("collapse_watchdog_fallback", what, units=units, widest=widest, predicted_s=predicted, actual_s=seconds)


def warn_of_pathology(units: Units, limits: Limits) -> None:
    """Warns: collapse_pathological_skip."""
    ops, most = len(units.data.op_indexes), limits.pathological_factor * limits.max_units
    what = f"{ops:,} ops are more than {most:,}: only the outermost modules are drawn, one box each"
    warn("collapse_pathological_skip", what, ops=ops, limit=most)
