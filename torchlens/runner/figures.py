"""The figures of a job: each entry's choices laid over the run's, folded to one drawing request. Knows no torch.

The order of layers is not decided here: what each layer says is collected, and `settings.compose` folds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from torchlens.base.errors import fail
from torchlens.render.engine import check_format
from torchlens.runner.hooks import Note, read_hooks, read_notes
from torchlens.runner.levels import GROUP, level
from torchlens.runner.spec import ModelSpec, read_model
from torchlens.settings import catalog
from torchlens.settings.compose import DrawRequest, Layer, resolve
from torchlens.settings.layers import check_draw, check_keys, load_draw, refuse
from torchlens.settings.plain import is_list, is_mapping
from torchlens.settings.theme import DEFAULT, Theme, load_theme
from torchlens.settings.view import PLAIN, View, load_view
from torchlens.settled import check_output

FIGURE_KEYS = ("model", "input", "view", "theme", "collapse", "encoding", "draw", "annotate", "path", "kind")
GROUPS = FIGURE_KEYS[:6]
# What a figure shows: the graph of a trace, the steps by which it folds, or the key of a theme.
GRAPH, SCHEDULE, LEGEND = KINDS = ("graph", "schedule", "legend")
# Options of a key, which shows no trace; what an entry of a kind may choose.
LEGEND_OPTIONS = ("file_format", "dpi", "engine", "pdf_font", "open_viewer")
_CHOSEN = {
    GRAPH: FIGURE_KEYS,
    SCHEDULE: ("model", "input", "view", "theme", "draw", "path", "kind"),
    LEGEND: ("theme", "draw", "path", "kind"),
}
MANIFEST = "manifest.json"
AUTO = "auto"
Source = str | Mapping[str, Any] | None


@dataclass(frozen=True)
class Choice:
    """One option of a group: its name, and its keys if the command line changed them, else None."""

    name: str | None
    keys: Mapping[str, Any] | None = None

    @property
    def source(self) -> Source:
        """What the loaders take."""
        return self.name if self.keys is None else self.keys


@dataclass(frozen=True)
class Run:
    """What the run chose for all figures. explicit: draw.<option>= of the command line; base: the same from a file."""

    model: Choice
    input: Choice
    view: Choice
    theme: Choice
    collapse: Choice
    encoding: Choice
    explicit: Mapping[str, Any]
    base: Mapping[str, Any]
    formats: tuple[str, ...]
    optional: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """One figure, ready to draw.

    model: None if it shows no trace; path: below the job's folder, without extension; optional: the formats to leave
    out if the page is too large for them; chosen: group -> name, for reports; notes: what is attached to its nodes
    before it is drawn; kind: one of KINDS.
    """

    name: str
    model: ModelSpec | None
    path: str
    given: Mapping[str, Any]
    layers: tuple[Layer, ...]
    request: DrawRequest
    formats: tuple[str, ...]
    optional: tuple[str, ...]
    chosen: Mapping[str, str]
    notes: tuple[Note, ...] = ()
    kind: str = GRAPH

    @property
    def recording(self) -> str:
        """Equal for figures that one recording serves; empty where there is nothing to record."""
        return self.model.key if self.model else ""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its files below the job's folder."""
        return tuple(f"{self.path}.{file_format}" for file_format in self.formats)


def plan_figures(run: Run, entries: Mapping[str, Any]) -> tuple[Figure, ...]:
    """All figures of a job, in order. Everything that can be refused without a model is refused here.

    A view that no trace can serve is no fault of the configuration: its figure fails, and the others are drawn.
    Raises: the codes of the loaders, of `read_model` and of `settled.check_output`; ConfigError[figure_path_conflict].
    """
    if not entries:
        fail("config_invalid", "figures names no figure", fix="choose figures=one or figures=tour")
    figures = tuple(plan_figure(run, name, entry) for name, entry in entries.items())
    _check_paths(figures)
    return figures


def plan_figure(run: Run, name: str, entry: object) -> Figure:
    """One figure. A view, theme, collapse, encoding, model or input that the entry names replaces the run's."""
    where = f"figures.{name}"
    keys = check_keys(where, "", {} if entry is None else entry, FIGURE_KEYS)
    kind = _kind(where, keys)
    choices = {group: _choice(where, group, keys, getattr(run, group)) for group in GROUPS if group in _CHOSEN[kind]}
    theme = _theme(choices["theme"], run.folders)
    view = _view(choices["view"], run.folders) if "view" in choices else None
    layers: tuple[Layer, ...] = (
        *(_layer(group, choices[group], run.folders) for group in ("collapse", "encoding") if group in choices),
        ("figure:file", read_hooks("draw", run.base, run.trust)),
        (f"figure:{name}", check_draw(where, read_hooks(f"{where}: draw", keys.get("draw"), run.trust))),
    )
    given = {**read_hooks("draw", run.explicit, run.trust), "theme": theme, **({"view": view} if view else {})}
    if kind == SCHEDULE:
        given.pop(GROUP, None)  # meant for the graphs of the run
    request = resolve(None, given, layers=layers)
    own = request.options.file_format
    formats = (check_format(own),) if own is not None else run.formats
    for file_format in formats:
        check_output(None, resolve(None, {**given, "file_format": file_format}, layers=layers).options)
    return Figure(
        name=name,
        model=_model(where, choices["model"], choices["input"], run) if "model" in choices else None,
        path=_path(where, keys.get("path", name)),
        given=given,
        layers=layers,
        request=request,
        formats=formats,
        optional=run.optional if own is None else (),
        chosen={group: _title(choice) for group, choice in choices.items()}
        | {"theme": theme.name}
        | ({"view": view.name} if view else {}),
        notes=read_notes(where, keys.get("annotate"), run.trust),
        kind=kind,
    )


def _kind(where: str, keys: Mapping[str, Any]) -> str:
    """What the entry is to show. Refused is what would change nothing of it."""
    kind = GRAPH if keys.get("kind") is None else keys["kind"]
    if kind not in KINDS:
        refuse(where, "kind", f"is {kind!r}", KINDS, got=kind)
    for key in keys:
        if key not in _CHOSEN[kind]:
            refuse(where, key, f"is not for a figure of kind {kind}", _CHOSEN[kind])
    draw = keys.get("draw") or {}
    if kind == SCHEDULE and GROUP in draw:
        refuse(where, f"draw.{GROUP}", "chooses one step, and a schedule shows all of them")
    for name in draw if kind == LEGEND else ():
        if name not in LEGEND_OPTIONS:
            refuse(where, f"draw.{name}", f"is not for a figure of kind {kind}", LEGEND_OPTIONS)
    return kind


# -- one group
def _choice(where: str, group: str, keys: Mapping[str, Any], default: Choice) -> Choice:
    if group not in keys:
        return default
    value = keys[group]
    if group == GROUP and level(value) is not None:
        return Choice(str(value))
    if value is None or isinstance(value, str):
        return Choice(value)
    if not is_mapping(value):
        refuse(where, group, f"is neither a name nor a mapping but {value!r}")
    return Choice(None, value)


def _title(choice: Choice) -> str:
    if choice.keys is None:
        return choice.name or "none"
    return f"{choice.name} (changed)" if choice.name else "given"


def _view(choice: Choice, folders: Sequence[str]) -> View | None:
    if choice.source is None or choice.source == PLAIN:
        return None
    return load_view(choice.source, folders, name=_title(choice) if choice.keys is not None and choice.name else "")


def _theme(choice: Choice, folders: Sequence[str]) -> Theme:
    source = DEFAULT if choice.source is None else choice.source
    return load_theme(source, folders, name=_title(choice) if choice.keys is not None and choice.name else "")


def _layer(group: str, choice: Choice, folders: Sequence[str]) -> Layer:
    label = f"{group}:{_title(choice)}"
    if choice.keys is not None:
        keys = check_keys(f"the {group} given", "", choice.keys, ("draw",))
        return label, check_draw(f"the {group} given", keys.get("draw"))
    if group == GROUP and (number := level(choice.name)) is not None:
        return label, {group: number}
    return label, {} if choice.name is None else load_draw(group, choice.name, folders)


def _model(where: str, model: Choice, chosen: Choice, run: Run) -> ModelSpec:
    if model.source is None:
        refuse(where, "model", "is not chosen", catalog.names("model", run.folders))
    place, keys = f"model {_title(model)}", model.keys
    if keys is None:
        entry = catalog.load("model", str(model.name), run.folders)
        place, keys = str(entry.path), entry.data
    inputs = chosen.keys
    if inputs is None:
        inputs = catalog.load("input", chosen.name, run.folders).data if chosen.name else {}
    present = {key: value for key, value in inputs.items() if value != "???"}
    return read_model(_title(model), place, keys, present, trust=run.trust)


# -- files
def read_formats(value: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The formats of the key `formats`, each once, and those that a large page goes without.

    A list, or a text with commas; `auto` is svg, which scales, and png, which opens everywhere unless it is huge.
    """
    if value == AUTO:
        return ("svg", "png"), ("png",)
    words = value.split(",") if isinstance(value, str) else value
    if not is_list(words) or not words or not all(isinstance(word, str) and word.strip() for word in words):
        fail("config_invalid", f"formats={value!r} is not a list of formats", fix="write formats=[svg,png] or auto")
    return tuple(dict.fromkeys(check_format(word.strip()) for word in words)), ()


def _path(where: str, value: object) -> str:
    path = PurePosixPath(str(value).replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", str(path))
    if not isinstance(value, str) or not path.name or outside:
        refuse(where, "path", f"is not a name below the job's folder but {value!r}")
    return str(path)


def _check_paths(figures: Sequence[Figure]) -> None:
    """Refuse two files of one name; names that differ in case only are one file on some systems."""
    taken = {MANIFEST: "the manifest"}
    for figure in figures:
        for file in figure.files:
            other = taken.setdefault(file.casefold(), f"figure {figure.name!r}")
            if other != f"figure {figure.name!r}":
                what = f"{other} and figure {figure.name!r} both write {file}"
                fail(
                    "figure_path_conflict", what, fix=f"give one of them another name: figures.{figure.name}.path=NAME"
                )
