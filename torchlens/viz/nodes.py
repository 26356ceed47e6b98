"""Ready-made hooks for `node_spec_fn=`, and how to combine hooks.

    trace.draw(node_spec_fn=nodes.chain(nodes.highlight(tl.func("relu")), nodes.rdm()))

Each takes a record and a `NodeSpec`; one that has nothing to say about a record leaves its node as it is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torchlens.base.colors import Ramp
from torchlens.base.errors import TorchLensError, UnavailableError
from torchlens.base.units import count_text, value_text
from torchlens.record_views import Module
from torchlens.scene.node_spec import Hook, NodeSpec, name_of
from torchlens.viz.subjects import Record, Target, chosen, nodes_behind

if TYPE_CHECKING:
    import numpy as np

    from torchlens.records.trace_data import TraceData

__all__ = ["chain", "feature_maps", "highlight", "mds", "plot", "rdm", "shade", "statistics"]

PALE_TO_STRONG = ("#fff7ec", "#fdbb84", "#d7301f")
# Items of a batch that a plot compares at most; the others are named in its row.
MOST_ITEMS = 64


def chain(*hooks: Hook) -> Hook:
    """One hook that calls several in order; each sees what those before it made."""

    def call(record: Any, spec: NodeSpec) -> NodeSpec:
        for hook in hooks:
            made = hook(record, spec)
            spec = spec if made is None else made
        return spec

    return _named(call, f"chain({', '.join(map(name_of, hooks))})")


# -- looks
def highlight(
    target: Target, *, color: str | None = "#d1242f", penwidth: float = 3.0, fillcolor: str | None = None
) -> Hook:
    """A strong border, and a fill if given, for the nodes that a selector means; a box, if it holds one of them.

    target: as for `trace.annotate`: a label, an address, a selector, or a function of an `Op`.
    """
    wanted = _Wanted(target)

    def call(record: Any, spec: NodeSpec) -> None:
        if wanted.has(record):
            spec.color = color or spec.color
            spec.penwidth = penwidth
            spec.fillcolor = fillcolor or spec.fillcolor

    return _named(call, "highlight")


def shade(
    value: str | Callable[[Any], float | None],
    *,
    low: float | None = None,
    high: float | None = None,
    ramp: Sequence[str] = PALE_TO_STRONG,
    name: str | None = None,
) -> Hook:
    """Fill ops by a number of your own, pale to strong, and write the number in a row, which is the key to the colour.

    value: an attribute of the record, `"autograd_memory"`, or a function of it; None leaves a node as it is, and so
    does a number that differs between the passes of a rolled layer; low, high: ends of the scale, by default the least
    and the largest value in the trace; name: of the number, in the row.
    """
    read = (lambda record: getattr(record, value)) if isinstance(value, str) else value
    colors, called = Ramp(ramp), name or (value if isinstance(value, str) else name_of(value))
    ranges: weakref.WeakKeyDictionary[Any, tuple[float, float]] = weakref.WeakKeyDictionary()

    def ends(trace: Any) -> tuple[float, float]:
        if trace not in ranges:
            known = [number for op in trace.ops if (number := read(op)) is not None]
            ranges[trace] = (min(known), max(known)) if known else (0.0, 0.0)
        least, most = ranges[trace]
        return least if low is None else low, most if high is None else high

    def call(record: Any, spec: NodeSpec) -> None:
        if isinstance(record, Module) or record.kind != "op":
            return
        number = _of_all_passes(lambda: read(record))
        if number is None:
            return
        least, most = ends(record._trace)
        spec.fillcolor = colors.at((number - least) / (most - least) if most > least else 0.5)
        spec.lines.append(f"{called}: {count_text(number) if isinstance(number, int) else value_text(number)}")

    return _named(call, f"shade({called})")


def statistics() -> Hook:
    """A row with the mean and the largest absolute value of the output, and how many values are no finite number.

    Needs kept values, or `CaptureOptions(out_stats=True)`; of several outputs the first is described.
    """

    def call(record: Any, spec: NodeSpec) -> None:
        if isinstance(record, Module) or record.kind == "constant":
            return
        found = _of_all_passes(lambda: record.stats)
        stats: Any = found[0] if isinstance(found, tuple) and found else found
        if not stats or not stats.numel:
            return
        if stats.abs_mean is not None:
            spec.lines.append(f"|x|: mean {value_text(stats.abs_mean)}, max {value_text(stats.abs_max)}")
        wrong = (("NaN", stats.n_nan), ("+Inf", stats.n_posinf), ("-Inf", stats.n_neginf))
        if parts := [f"{count} {word}" for word, count in wrong if count]:
            spec.lines.append(f"{', '.join(parts)} of {stats.numel}")

    return _named(call, "statistics")


# -- plots
def plot(draw: Callable[[Any], object], *, target: Target | None = None, name: str | None = None) -> Hook:
    """Put a picture of its value into each node, or into those of a selector only.

    draw: gets the kept output of an op as `op.out` gives it and returns a PIL image, a path, or None for no picture.
    Nodes without a kept value, and rolled layers of several passes, stay as they are.
    Raises, while drawing: InvalidArgumentError[node_spec_failed] if the trace kept no values at all.
    """

    def show(value: object) -> tuple[object, Sequence[str]]:
        return draw(value), ()

    return _plotter(show, target, name or f"plot({name_of(draw)})")


def rdm(target: Target | None = None, *, metric: str = "correlation") -> Hook:
    """The representational dissimilarity matrix of the items of a batch, inside the node whose output they are.

    The output is read as (N, ...): row by row the dissimilarity of each item to each, dark for alike. metric:
    "correlation" (1 - Pearson's r), "cosine" or "euclidean". Needs kept values and at least 2 items; the first 64 are
    shown. An item whose values are all equal has no correlation; its cells are grey.
    Source: Kriegeskorte, Mur, Bandettini, "Representational similarity analysis", 2008.
    """
    _check_metric(metric)

    def show(value: object) -> tuple[object, Sequence[str]]:
        import numpy as np

        from torchlens.viz import plots

        items, words = _items(value, 2)
        if items is None:
            return None, ()
        found = plots.dissimilarities(items, metric)
        known = found[np.isfinite(found)]
        scale = [f"{value_text(float(known.min()))} (dark) to {value_text(float(known.max()))}"] if known.size else []
        return plots.matrix(found), (f"RDM ({metric}): {words}", *scale)

    return _plotter(show, target, "rdm")


def mds(target: Target | None = None, *, metric: str = "euclidean", groups: Sequence[int] | None = None) -> Hook:
    """The items of a batch as points in a plane, near each other where their representations are, inside the node.

    Classical multidimensional scaling of the dissimilarities of `rdm`; a row tells how much of their variance the plane
    shows. groups: the class of each item, which gives the colour where there are as many; else it is the order. Needs
    kept values and at least 3 items.
    """
    _check_metric(metric)

    def show(value: object) -> tuple[object, Sequence[str]]:
        import numpy as np

        from torchlens.viz import plots

        items, words = _items(value, 3)
        if items is None:
            return None, ()
        distances = plots.dissimilarities(items, metric)
        if not np.isfinite(distances).all():
            return None, (f"MDS ({metric}): an item has no dissimilarity",)
        points, share = plots.classical_mds(distances)
        colors = list(groups) if groups is not None and len(groups) == len(items) else None
        lines = [f"MDS ({metric}): {words}", f"{share:.0%} of the variance in the plane"]
        return plots.scatter(points, colors), (*lines, f"colour: {'order' if colors is None else 'group'}")

    return _plotter(show, target, "mds")


def feature_maps(target: Target | None = None, *, max_channels: int = 9, item: int = 0) -> Hook:
    """The first channels of one item's activation as a grid of maps inside the node; see `tl.viz.feature_maps`."""

    def show(value: object) -> tuple[object, Sequence[str]]:
        from torchlens.viz.grids import draw_maps, numbers_of

        array = numbers_of(value)
        if array is None or array.ndim != 4 or 0 in array.shape or not -len(array) <= item < len(array):
            return None, ()
        shown = min(max_channels, array.shape[1])
        return draw_maps(value, max_channels, item=item), (f"{shown} of {array.shape[1]} channels, item {item}",)

    return _plotter(show, target, "feature_maps")


def _plotter(show: Callable[[object], tuple[object, Sequence[str]]], target: Target | None, name: str) -> Hook:
    wanted = _Wanted(target) if target is not None else None

    def call(record: Any, spec: NodeSpec) -> None:
        if isinstance(record, Module):
            return
        if wanted is not None and not wanted.has(record):
            return
        found, value = _value(record)
        if not found:
            return
        picture, lines = show(value)
        if picture is not None:
            spec.image = picture
        spec.lines.extend(lines)

    return _named(call, name)


def _value(record: Any) -> tuple[bool, object]:
    """Whether one value stands for the record, and that value."""
    try:
        return True, record.out
    except UnavailableError:
        data, _ = nodes_behind(record)
        if not data.outcome.values_kept:
            raise
    except TorchLensError as refusal:
        if refusal.code != "layer_pass_ambiguous":
            raise
    return False, None


def _items(value: object, least: int) -> tuple[np.ndarray | None, str]:
    """The items of a batch as rows (N, F), and how many; None if they are too few or not all finite."""
    import numpy as np

    from torchlens.viz.grids import numbers_of

    array = numbers_of(value)
    if array is None or array.ndim < 2 or len(array) < least or not array[0].size or not np.isfinite(array).all():
        return None, ""
    words = f"{len(array)} items" if len(array) <= MOST_ITEMS else f"first {MOST_ITEMS} of {len(array)} items"
    return array[:MOST_ITEMS].reshape(min(len(array), MOST_ITEMS), -1), words


# -- help
class _Wanted:
    """Which nodes of whatever trace is being drawn a target means; found once per trace."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: weakref.ref[TraceData] | None = None
        self._nodes: frozenset[int] = frozenset()

    def has(self, record: Record) -> bool:
        data, nodes = nodes_behind(record)
        if self._known is None or self._known() is not data:
            self._nodes = frozenset(chosen(record._trace, self._target))
            self._known = weakref.ref(data)
        return not self._nodes.isdisjoint(nodes)


def _of_all_passes(read: Callable[[], Any]) -> Any:
    """A fact that holds for all passes of a record, None if it differs between them."""
    try:
        return read()
    except TorchLensError as refusal:
        if refusal.code == "layer_pass_ambiguous":
            return None
        raise


def _check_metric(metric: str) -> None:
    known = ("correlation", "cosine", "euclidean")
    if metric not in known:
        raise ValueError(f"metric={metric!r} is not a metric; use one of {', '.join(known)}")


def _named(hook: Hook, name: str) -> Hook:
    hook.__qualname__ = name  # type: ignore[attr-defined]
    return hook
