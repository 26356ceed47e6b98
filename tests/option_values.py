"""Values to try for every option of a drawing: the closed sets from the declaration, the others listed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torchlens.base.text import truncate
from torchlens.records.trace_data import TraceData
from torchlens.settings.options import options


class PerTrace(NamedTuple):
    """A value that depends on the trace; None where the trace has none."""

    words: str
    of: Callable[[TraceData], object]

    def __str__(self) -> str:
        return self.words


def _outer_module(data: TraceData) -> object:
    """The first module of the model that ran several ops, inner ones included."""
    for module in data.modules:
        spans = [data.calls[call].span for call in module.calls]
        if module.address and any(stop - start > 1 for start, stop in spans):
            return module.address
    return None


def _keep(record: object, spec: object) -> None:
    """A hook that changes nothing."""


def _steps(record: object) -> float:
    """A number of every node."""
    return float(getattr(record, "pass_number", 1))


# Values of options without a closed set, or with more values than their words.
OPEN: dict[str, tuple[object, ...]] = {
    "depth": (1, 2, 1000),
    "module": (PerTrace("outer module", _outer_module),),
    "collapse": ("none", "auto", "max", 0.0, 0.5, 1.0),
    "collapse_rules": (
        (),
        ({"class": "*", "do": "fold"}, {"op": "*norm", "do": "keep"}),
        ({"op": "reshape", "do": "hide"}, {"op": "re*", "do": "hide"}, {"op": "add", "do": "hide"}),
        ({"address": "*.0", "do": "hide"}, {"address": "*", "do": "keep"}),
    ),
    "node_label_fields": (("name", "shape", "dtype"), tuple(options()["node_label_fields"].choices), ()),
    "node_spec_fn": (_keep,),
    "collapsed_node_spec_fn": (_keep,),
    "color_by": (*options()["color_by"].choices, _steps),
    "size_by": (*options()["size_by"].choices, _steps),
    "size_cap": (1.0, 3.0),
    "font_size": (6, 30),
    "fit_width": (360,),
    "graph_attrs": ({"splines": "polyline"}, {}),
    "caption": ('Figure 1: <caption> & "more"', ""),
    "file_format": ("dot",),
    "dpi": (72,),
    "pdf_font": (),
}
# How a drawing gets out is no business of the scene.
OUTPUT = {"file_format", "dpi", "engine", "pdf_font", "open_viewer"}
# What an option needs beside it.
COMPANIONS: dict[str, dict[str, object]] = {
    "color_scale": {"color_by": "time"},
    "size_scale": {"size_by": "bytes"},
    "size_cap": {"size_by": "bytes"},
}
_ABSENT = ("encoding_evidence_missing", "device_time_unavailable", "size_by_rolled_varying")
# Codes of an option that are an honest answer where a trace lacks what it is about.
REFUSALS: dict[str, tuple[str, ...]] = {
    "color_by": _ABSENT,
    "size_by": _ABSENT,
    "stack_by": ("stack_by_auto_underivable",),
}


def values_of(name: str) -> tuple[object, ...]:
    """All values of an option with a closed set, else those listed, and None or False where that is a value."""
    option = options()[name]
    values = OPEN.get(name, (True, False) if option.type is bool else option.choices)
    return values + ((None,) if option.nullable else ()) + ((False,) if option.off else ())


CHOICES = [(name, value) for name in options() for value in values_of(name)]


def words(value: object) -> str:
    """A value in the name of a test, the same in every process."""
    listed = isinstance(value, tuple) and not isinstance(value, PerTrace)
    text = ",".join(map(str, value)) if listed else getattr(value, "__name__", str(value))
    return truncate(text, 40)


def keywords_for(name: str, value: object, data: TraceData) -> dict[str, object]:
    """The keywords that set one option to a value on a trace, with what that option needs beside it."""
    chosen = value.of(data) if isinstance(value, PerTrace) else value
    return {**COMPANIONS.get(name, {}), name: chosen}
