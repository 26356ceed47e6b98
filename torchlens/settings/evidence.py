"""Whether a trace holds what a view or an option is about: timings, passes, attention, what autograd kept.

Refuses a view without its subject, and names the wishes that are left out. Decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from torchlens.base.errors import fail, warn
from torchlens.records.nonfinite import Nonfinite
from torchlens.settings.resolvers import first_attention_block, has_attention, several_passes

if TYPE_CHECKING:
    from torchlens.records.trace_data import TraceData
    from torchlens.settings.options import DrawOptions

_Column = Callable[["TraceData"], Sequence[float | int | None]]

# Family of evidence -> the words for it, and the column of the trace that holds it.
FAMILIES: dict[str, tuple[str, _Column]] = {
    "timings": ("call times", lambda data: data.nodes.time_s),
    "bytes": ("output sizes", lambda data: data.nbytes),
    "flops": ("FLOP counts", lambda data: data.nodes.flops),
}
# Value source of a colour channel -> its family; the others belong to none.
SOURCES = {
    "time": "timings", "func_duration": "timings", "total_func_duration": "timings",
    "bytes": "bytes", "activation_memory": "bytes", "total_activation_memory": "bytes",
    "flops": "flops", "flops_forward": "flops", "total_flops_forward": "flops",
}  # fmt: skip
# Those of which a box shows the exact sum over its ops.
ADDITIVE = ("time", "func_duration", "bytes", "activation_memory", "flops", "flops_forward")
# Ops that a view draws one by one at most.
DETAIL_LIMIT = 2000
_ELSE = 'leave view= unset, or pass view="overview"'


class Problem(NamedTuple):
    """Why a view is refused. what: follows `view=NAME `."""

    code: str
    what: str
    fix: str = ""


class Asked(NamedTuple):
    """What a need is asked about. options: as settled; own: those among them that no layer above the view set."""

    data: TraceData
    options: DrawOptions
    own: frozenset[str]


class Need(NamedTuple):
    """A need of a view. check: what is wrong, None if nothing is; bound: what is wrong with every trace, so that no
    model has to run.
    """

    check: Callable[[Asked], Problem | None]
    bound: Problem | None = None


# -- needs
def _any_of(family: str) -> Need:
    words, column = FAMILIES[family]

    def check(asked: Asked) -> Problem | None:
        if _covers(asked.data, column):
            return None
        return Problem("view_headline_evidence_missing", f"is about {words}, and no op of this trace has any", _ELSE)

    return Need(check)


def _shapes(asked: Asked) -> Problem | None:
    outs = asked.data.nodes.outs
    if any(spec.shape is not None for i in asked.data.op_indexes for spec in outs[i]):
        return None
    return Problem("view_headline_evidence_missing", "is about shapes, and no op of this trace has any", _ELSE)


def _detail(asked: Asked) -> Problem | None:
    data, options = asked.data, asked.options
    ops = len({data.nodes.layer[i] for i in data.op_indexes}) if options.rolled else len(data.op_indexes)
    folds = options.collapse not in ("none", 0.0)
    if ops <= DETAIL_LIMIT or folds or options.module is not None:
        return None
    what = f"draws every op, and {ops:,} are more than {DETAIL_LIMIT:,}"
    return Problem("view_above_detail_budget", what)


def _attention(asked: Asked) -> Problem | None:
    if not has_attention(asked.data):
        return Problem("view_attention_subject_absent", "is about attention, and nothing in this trace is", _ELSE)
    if "module" in asked.own and first_attention_block(asked.data) is None:
        what = "shows the first repeated block that holds attention, and no block that does repeats"
        return Problem("view_attention_subject_absent", what, f"name a module with module=, or {_ELSE}")
    return None


def _several_passes(asked: Asked) -> Problem | None:
    if several_passes(asked.data):
        return None
    what = "is about passes, and every op of this trace ran once"
    return Problem("view_single_pass_no_sequence", what, _ELSE)


def _edits(asked: Asked) -> Problem | None:
    return _NO_EDITS


_NO_EDITS = Problem("surgery_evidence_missing", "is about edits, and no trace holds any: outputs cannot be edited yet")

NEEDS: dict[str, Need] = {
    **{family: _any_of(family) for family in FAMILIES},
    "shapes": Need(_shapes),
    "detail": Need(_detail),
    "attention": Need(_attention),
    "several_passes": Need(_several_passes),
    "edits": Need(_edits, bound=_NO_EDITS),
}


def check_bound(view: str, needs: Sequence[str]) -> None:
    """Refuse a view that no trace can serve, before there is one. Raises: EvidenceError with the code of the need."""
    for problem in (NEEDS[name].bound for name in needs):
        if problem is not None:
            _refuse(view, problem)


def _refuse(view: str, problem: Problem) -> NoReturn:
    fail(problem.code, f"view={view!r} {problem.what}", fix=problem.fix, view=view)


def check(
    data: TraceData,
    view: str,
    needs: Sequence[str],
    options: DrawOptions,
    own: frozenset[str] = frozenset(),
) -> None:
    """Refuse a view whose subject the trace does not hold. Without a view nothing is refused: the key says it.

    view, needs: its name, and names of `NEEDS`; own: the options that no layer above the view set. Only ops count: an
    input takes no time, and knowing that is no evidence.
    Raises: EvidenceError with the code of the need that is not met; EvidenceError[view_source_zero_coverage] when no op
    has a value of another colour source put into the view.
    """
    for need in map(NEEDS.__getitem__, needs):
        problem = need.check(Asked(data, options, own))
        if problem is not None:
            _refuse(view, problem)
    if isinstance(options.color_by, str) and options.color_by in SOURCES:
        words, column = FAMILIES[SOURCES[options.color_by]]
        if not _covers(data, column):
            what = f"view={view!r} colours by {options.color_by}, and no op of this trace has {words}"
            fail("view_source_zero_coverage", what, view=view, source=options.color_by)


# -- wishes
class Lack(NamedTuple):
    """A wish that the trace cannot meet: in the words of a caption, and what would help. code: of the warning."""

    what: str
    fix: str = ""
    code: str = "view_secondary_degraded"


def shows_saved(options: DrawOptions) -> bool:
    """Whether a drawing says what ops kept for the backward pass: recording measures that only on request."""
    return options.show_saved_for_backward or "saved" in (options.node_label_fields or ())


# `tl.draw` records without gradients, so that only a trace of one's own holds what autograd kept.
_MEASURED = "tl.trace(..., capture=tl.options.CaptureOptions(saved_for_backward=True))"


def _saved(data: TraceData | None, options: DrawOptions) -> Lack | None:
    if data is None or not shows_saved(options):
        return None
    if data.saved_for_backward is None:
        return Lack("saved for backward: not measured", f"record with {_MEASURED}")
    if not data.saved_for_backward and not _has_gradients(data):
        return Lack(
            "saved for backward: recorded without gradients", f"record outside torch.no_grad(), with {_MEASURED}"
        )
    return None


def shows_nonfinite(options: DrawOptions) -> bool:
    """Whether a drawing says which outputs hold NaN or Inf: recording looks at values only on request."""
    return options.show_nonfinite or "nonfinite" in (options.node_label_fields or ())


def _nonfinite(data: TraceData | None, options: DrawOptions) -> Lack | None:
    if data is None or not shows_nonfinite(options) or Nonfinite(data).any_checked():
        return None
    return Lack("nonfinite status not checked: no saved activations", code="view_nonfinite_not_checked")


def _containers(data: TraceData | None, options: DrawOptions) -> Lack | None:
    """Inside a module in focus there need be no output to label."""
    if data is None:
        return None
    outputs = [path for kind, path in zip(data.nodes.kind, data.nodes.path, strict=True) if kind == "output"]
    if not options.show_containers or options.module is not None or any(outputs):
        return None
    return Lack("container labels: the result is no container", "pass show_containers=False")


def _columns(data: TraceData | None, options: DrawOptions) -> Lack | None:
    why = why_no_columns(data, options.stack_by, rolled=options.rolled)
    return Lack(why, "pass stack_by=None") if why else None


# Option -> what a trace lacks for it. Whoever asks in person for columns is refused, for the others warned.
WISHES: dict[str, Callable[[TraceData | None, DrawOptions], Lack | None]] = {
    "show_saved_for_backward": _saved,
    "show_containers": _containers,
    "show_nonfinite": _nonfinite,
    "stack_by": _columns,
}
_WARNED = ("show_saved_for_backward", "show_containers", "show_nonfinite")


def lacking(data: TraceData, options: DrawOptions) -> list[Lack]:
    """The wishes that are left out for want of evidence. The figure says so, and `warn_of` the caller."""
    found = [WISHES[name](data, options) for name in _WARNED]
    return [lack for lack in found if lack is not None]


def warn_of(data: TraceData, options: DrawOptions, told: Sequence[str] = ()) -> None:
    """Warn of every wish that is left out: [view_nonfinite_not_checked] or [view_secondary_degraded].

    told: what was warned of already; a row of the labels may wish for the same as the view.
    """
    for lack in lacking(data, options):
        if lack.what not in told:
            warn(lack.code, lack.what, fix=lack.fix)


def in_lockstep(data: TraceData) -> bool:
    """Whether columns follow from the passes: in the order of execution, pass numbers of what repeats never fall."""
    last = 0
    for i in data.op_indexes:
        if data.layers[data.nodes.layer[i]].num_passes > 1:
            if data.nodes.pass_number[i] < last:
                return False
            last = data.nodes.pass_number[i]
    return last > 0


def why_no_columns(data: TraceData | None, wish: object, *, rolled: bool) -> str:
    """Why a drawing cannot have the columns that a view wishes for, in the words of a caption; empty if it can."""
    if wish is not None and rolled:
        return "passes not aligned: they are drawn as one"
    if wish == "auto" and data is not None and not in_lockstep(data):
        return "passes not aligned: they do not run in lockstep"
    return ""


def _has_gradients(data: TraceData) -> bool:
    return any(spec.requires_grad for i in data.op_indexes for spec in data.nodes.outs[i])


def _covers(data: TraceData, column: _Column) -> bool:
    values = column(data)
    return any(values[op] is not None for op in data.op_indexes)
