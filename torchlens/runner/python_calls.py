"""The Python that records and draws what a figure of the runner shows, as text for the documentation.

What it cannot say as plainly as the runner does - weights of a file, tokens of a text - is refused, not approximated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torchlens.base.errors import fail
from torchlens.runner.figures import GRAPH, LEGEND, SCHEDULE
from torchlens.runner.hooks import ARGS, PARTIAL, TARGET, ConfiguredHook
from torchlens.runner.spec import ModelSpec
from torchlens.settings.channel_checks import measures
from torchlens.settings.plain import is_list, is_mapping
from torchlens.settings.theme import DEFAULT
from torchlens.settings.view import PLAIN

if TYPE_CHECKING:
    from torchlens.runner.figures import Figure

_WIDTH = 100
_EXAMPLES = "torchlens.examples."
# Longer beginnings first.
_SHORT = ((_EXAMPLES, ""), ("torchlens.records.selectors.", "tl."), ("torchlens.", "tl."))


class _Name(str):
    """Text that is code already."""


class _Evaluated(NamedTuple):
    """A model that is put into evaluation mode."""

    factory: Mapping[str, Any]


# Kind of figure -> the function that draws it, and what it takes before the name of a file.
_CALLS = {
    GRAPH: ("trace.draw", ()),
    SCHEDULE: ("tl.viz.schedule", (_Name("trace"),)),
    LEGEND: ("tl.viz.legend", ()),
}


def imports(figures: Sequence[Figure]) -> str:
    """What the Python of these figures needs."""
    text = "\n".join(line for figure in figures for line in (*recording(figure, None), call(figure)))
    names = {name for figure in figures for name in _targets(figure)}
    modules = {name.removeprefix(_EXAMPLES).split(".")[0] for name in names if name.startswith(_EXAMPLES)}
    pictures = "Image.open" in text
    packages = {"torch"} | {name.split(".")[0] for name in names} - {"torchlens"} | ({"numpy"} if pictures else set())
    lines = [f"import {package}" for package in sorted(packages)]
    lines += ["from PIL import Image"] if pictures else []
    lines += ["", "import torchlens as tl"]
    if modules:
        lines.append(f"from torchlens.examples import {', '.join(sorted(modules))}")
    return "\n".join(lines)


def recording(figure: Figure, before: Figure | None) -> list[str]:
    """The lines that make `trace`; none if `trace` is already what the figure needs. before: the figure above."""
    spec = figure.model
    if spec is None or (before is not None and _needs(before) == _needs(figure)):
        return []
    return [f"torch.manual_seed({spec.seed})", *_input(spec), _trace(spec, figure), *_notes(figure)]


def call(figure: Figure) -> str:
    """The line that draws: `trace.draw("depth.svg", depth=1)`."""
    function, subject = _CALLS[figure.kind]
    return _expression(function, [*subject, f"{figure.name}.svg"], _given(figure))


def keywords(figure: Figure) -> list[str]:
    """What the figure is drawn with, as the line that draws writes it: `["depth=1"]`."""
    return [f"{name}={_value(value)}" for name, value in _given(figure).items()]


def _given(figure: Figure) -> dict[str, Any]:
    """Option -> value. What a collapse or encoding file says is written out: Python takes options, not such files."""
    given: dict[str, Any] = {group: figure.chosen[group] for group in ("view", "theme") if _chosen(figure, group)}
    if unnamed := [group for group, name in given.items() if name == "given" or name.endswith("(changed)")]:
        fail("config_invalid", f"figure {figure.name!r}: a page can only write down a {unnamed[0]} that has a name")
    for label, values in figure.layers:
        if label.startswith("figure:file") and values:
            fail("config_invalid", f"figure {figure.name!r}: {label} sets options that the page would have to say")
        given |= values
    return given


def _chosen(figure: Figure, group: str) -> bool:
    return figure.chosen.get(group, "none") not in (PLAIN, DEFAULT, "none")


# -- recording
def _needs(figure: Figure) -> tuple[object, ...]:
    """Equal for figures that one recording serves; notes belong to the figure that has them."""
    return figure.recording, _measured(figure), figure.name if figure.notes else ""


def _measured(figure: Figure) -> dict[str, bool]:
    saved, stats = measures([figure.request.options])
    return {name: True for name, wanted in (("saved_for_backward", saved), ("out_stats", stats)) if wanted}


def _model(spec: ModelSpec) -> Mapping[str, Any] | _Evaluated:
    if spec.checkpoint is not None or spec.tokenizer is not None:
        fail(
            "config_invalid",
            f"model {spec.name!r} has a checkpoint or a tokenizer: a page cannot write down where from",
        )
    return _Evaluated(spec.factory) if spec.mode == "eval" else spec.factory


def _input(spec: ModelSpec) -> list[str]:
    """The lines that read a picture; a shape needs none."""
    given = spec.input
    if given.kind == "shape" and not given.values:
        return []
    if given.kind != "image" or given.path is None or given.mean or given.std:
        fail("config_invalid", f"model {spec.name!r}: a page cannot write down how its input is made")
    *_, height, width = given.shape
    return [
        f'picture = Image.open("{given.path}").convert("RGB").resize(({width}, {height}))',
        "x = torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)[None] / 255",
    ]


def _trace(spec: ModelSpec, figure: Figure) -> str:
    capture = dict[str, Any](_measured(figure))
    if spec.input.kind == "image":
        capture["input_image"] = _Name("picture")
        arguments, named = [_model(spec), _Name("x")], {}
    else:
        arguments, named = [_model(spec)], {"input_shape": _shape(spec.input.shape)}
    return f"trace = {_expression('tl.trace', arguments, named | ({'capture': capture} if capture else {}))}"


def _shape(shape: Any) -> Any:
    if is_mapping(shape):
        return {name: _shape(size) for name, size in shape.items()}
    return tuple(_shape(size) if is_list(size) else size for size in shape)


def _notes(figure: Figure) -> list[str]:
    found: list[str] = []
    for note in figure.notes:
        named = {"data": note.data, "image": note.image}
        given = {name: value for name, value in named.items() if value is not None}
        found.append(_expression("trace.annotate", [note.select], given))
    return found


# -- expressions
def _expression(function: str, arguments: Sequence[Any], named: Mapping[str, Any], indent: int = 0) -> str:
    """A call on one line, or on one line per argument if that is too long."""
    given = [*(("", value) for value in arguments), *((f"{name}=", value) for name, value in named.items())]
    line = f"{function}({', '.join(f'{before}{_value(value)}' for before, value in given)})"
    if len(line) + indent <= _WIDTH:
        return line
    inner = indent + 4
    parts = [f"{' ' * inner}{before}{_broken(value, inner)}," for before, value in given]
    return "\n".join([f"{function}(", *parts, f"{' ' * indent})"])


def _broken(value: Any, indent: int) -> str:
    """A value that may take several lines if it is a call or a mapping."""
    if isinstance(value, _Evaluated):
        return f"{_broken(value.factory, indent)}.eval()"
    if isinstance(value, ConfiguredHook):
        value = value.factory
    if is_mapping(value) and TARGET in value and not value.get(PARTIAL):
        return _expression(*_parts(value), indent)
    if is_mapping(value) and TARGET not in value and len(_value(value)) + indent > _WIDTH:
        inner = indent + 4
        items = [f"{' ' * inner}{_value(key)}: {_broken(item, inner)}," for key, item in value.items()]
        return "\n".join(["{", *items, f"{' ' * indent}}}"])
    return _value(value)


def _value(value: Any) -> str:
    if isinstance(value, _Name):
        return str(value)
    if isinstance(value, ConfiguredHook):
        return _value(value.factory)
    if isinstance(value, _Evaluated):
        return f"{_value(value.factory)}.eval()"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if is_mapping(value):
        if TARGET in value:
            return _made(value)
        return "{" + ", ".join(f"{_value(key)}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple) and value and isinstance(value[0], int):
        return repr(value)
    if is_list(value):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _made(factory: Mapping[str, Any]) -> str:
    """A `_target_` as the call it is; of a partial one without arguments, the function itself."""
    name, arguments, named = _parts(factory)
    if not factory.get(PARTIAL):
        return f"{name}({', '.join([*map(_value, arguments), *(f'{key}={_value(v)}' for key, v in named.items())])})"
    if named or arguments:
        fail("config_invalid", f"{name}: a page cannot write down a partial call with arguments")
    return name


def _parts(factory: Mapping[str, Any]) -> tuple[str, Sequence[Any], dict[str, Any]]:
    """Name, arguments and keywords of a `_target_`."""
    name = str(factory[TARGET])
    for long, short in _SHORT:
        if name.startswith(long):
            name = short + name.removeprefix(long)
            break
    named = {key: item for key, item in factory.items() if key not in (TARGET, ARGS, PARTIAL)}
    return name, factory.get(ARGS, ()), named


def _targets(figure: Figure) -> list[str]:
    """Names of everything that a figure's Python calls because the configuration says so."""
    from torchlens.runner.spec import targets

    mappings: dict[str, Any] = {"notes": [note.select for note in figure.notes]}
    mappings |= {"model": figure.model.factory} if figure.model else {}
    for _, values in figure.layers:
        mappings |= {key: value.factory for key, value in values.items() if isinstance(value, ConfiguredHook)}
    return [str(target) for _, target in targets(mappings)]
