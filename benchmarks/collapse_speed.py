"""How long folding takes, by the number of units: planning alone, per unit, and the exponent of the growth.

    python benchmarks/collapse_speed.py [--sizes 1000,5000,20000,50000] [--shapes stack,deep]

Eight shapes of networks: residual blocks in a row, nested stages, one unrolled loop over a cell, ops without any
module, modules nested one in another, blocks side by side, a module that calls itself, and random module trees; each
unrolled and rolled. Times are CPU milliseconds, the best of three; `growth` is the time per unit against the smallest
size; the last line is the fit behind `conf/collapse/limits.yaml`.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

# The graphs are those of the tests, which are found from the root only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.builders import Builder, Ref
from tests.random_traces import random_trace
from torchlens.plan.collapse.guard import measure
from torchlens.plan.collapse.quality import choose, readable_band
from torchlens.plan.collapse.schedule import make_fallback, make_path
from torchlens.plan.collapse.units import Base, count_units
from torchlens.plan.pipeline import full_drawing
from torchlens.records.trace_data import TraceData
from torchlens.settings.compose import resolve

SIZES = "1000,5000,20000,50000"
REPEATS = 3


def _block(b: Builder, place: str, x: Ref) -> Ref:
    with b.module(place) as block:
        h = b.op("relu", [b.linear(f"{place}.fc1", x, 8)])
        h = b.op("add", [x, b.linear(f"{place}.fc2", h, 8)])
        block.returns = [b.op("relu", [h])]
    return block.returns[0]


def stack(units: int) -> TraceData:
    """Residual blocks of five ops in a row."""
    b = Builder("Stack")
    h = b.input()
    for k in range(units // 5):
        h = _block(b, f"blocks.{k}", h)
    b.output(h)
    return b.build()


def stages(units: int) -> TraceData:
    """Ten blocks to a stage, ten stages to a group."""
    b = Builder("Stages")
    h = b.input()
    for g in range(max(units // 500, 1)):
        with b.module(f"groups.{g}", "Group") as group:
            for s in range(10):
                with b.module(f"groups.{g}.stages.{s}", "Stage") as stage:
                    for k in range(10):
                        h = _block(b, f"groups.{g}.stages.{s}.blocks.{k}", h)
                    stage.returns = [h]
            group.returns = [h]
    b.output(h)
    return b.build()


def loop(units: int) -> TraceData:
    """One cell of four ops, called again and again."""
    b = Builder("Loop")
    x, h = b.input(), b.op("zeros", [])
    for _ in range(units // 4):
        with b.module("cell", "Cell") as cell:
            h = b.op("tanh", [b.op("add", [b.linear("cell.inp", x, 8), b.linear("cell.rec", h, 8)])])
            cell.returns = [h]
    b.output(h)
    return b.build()


def bare(units: int) -> TraceData:
    """Ops of the model itself, with a skip now and then."""
    b = Builder("Bare")
    h = skip = b.input()
    for k in range(units):
        h = b.op("add", [h, skip]) if k % 7 == 0 else b.op("relu", [h])
        skip = h if k % 21 == 0 else skip
    b.output(h)
    return b.build()


def deep(units: int) -> TraceData:
    """Modules in modules, 100 deep, each with two ops of its own before the inner one and two after it."""
    b = Builder("Deep")

    def nest(place: str, h: Ref, left: int) -> Ref:
        with b.module(place, "Nest") as opened:
            h = b.op("tanh", [b.op("relu", [h])])
            h = nest(f"{place}.m", h, left - 1) if left else h
            opened.returns = [b.op("add", [b.op("neg", [h]), h])]
        return opened.returns[0]

    h = b.input()
    for k in range(max(units // 400, 1)):
        h = nest(f"towers.{k}", h, 99)
    b.output(h)
    return b.build()


def fan(units: int) -> TraceData:
    """Blocks side by side, all of one input and into one op."""
    b = Builder("Fan")
    x = b.input()
    b.output(b.op("stack", {(0, k): _block(b, f"arms.{k}", x) for k in range(units // 5)}))
    return b.build()


def recursion(units: int) -> TraceData:
    """A module that calls itself 50 times, again and again."""
    b = Builder("Recursion")

    def call(h: Ref, left: int) -> Ref:
        with b.module("cell", "Cell") as cell:
            h = b.op("tanh", [b.op("neg", [h], layer="neg")], layer="tanh")
            cell.returns = [call(h, left - 1) if left else h]
        return cell.returns[0]

    h = b.input()
    for _ in range(units // 100):
        h = b.op("exp", [call(h, 49)], layer="exp")
    b.output(h)
    return b.build()


def tree(units: int) -> TraceData:
    """Random trees of modules: towers of blocks, fans, shared blocks, buffers, side inputs."""
    return random_trace(1, size=units)


SHAPES = {shape.__name__: shape for shape in (stack, stages, loop, bare, deep, fan, recursion, tree)}


def _best(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(REPEATS):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1000


def _plan(base: Base, mode: str | float) -> None:
    units = count_units(base)
    band = readable_band(base.data)
    choose(make_path(units, band, None), mode, band)


def _fallback(base: Base) -> None:
    units = count_units(base)
    make_fallback(units, readable_band(base.data), None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    warnings.simplefilter("ignore")
    times = f"{'auto':>9} {'max':>9} {'fallback':>9} {'us/unit':>8} {'growth':>7}"
    print(f"{'network':<9} {'rolled':<6} {'ops':>7} {'units':>7} {'widest':>7} {times}")
    points: list[tuple[float, float]] = []
    for shape in asked.shapes.split(","):
        traces = [SHAPES[shape](size) for size in sizes]
        for rolled in (False, True):
            points += _measure(shape, traces, rolled)
    slope, start = _fit(points)
    print(f"fit over all: {math.exp(start):.4f} ms * units ** {slope:.2f}")


def _measure(shape: str, traces: Sequence[TraceData], rolled: bool) -> list[tuple[float, float]]:
    """Print a row per size. Rolled, time is per op: the ops of all passes are read, however few nodes are drawn."""
    points: list[tuple[float, float]] = []
    first: float | None = None
    for data in traces:
        base = full_drawing(data, resolve(data, {"rolled": rolled}))[0]
        load = measure(count_units(base))
        auto, most = _best(lambda b=base: _plan(b, "auto")), _best(lambda b=base: _plan(b, "max"))
        simple = _best(lambda b=base: _fallback(b))
        ops, slower = len(data.op_indexes), max(auto, most)
        each = slower / (ops if rolled else load.units) * 1000
        first = first or each
        times = f"{auto:>9.1f} {most:>9.1f} {simple:>9.1f} {each:>8.1f} {each / first:>7.2f}"
        print(f"{shape:<9} {rolled!s:<6} {ops:>7} {load.units:>7} {load.widest:>7} {times}", flush=True)
        points += [] if rolled else [(math.log(load.units), math.log(slower))]
    return points


def _fit(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope and start of the straight line of least squares."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return slope, mean_y - slope * mean_x


if __name__ == "__main__":
    main()
