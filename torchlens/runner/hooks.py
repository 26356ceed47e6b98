"""What a figure entry says of single nodes: hooks (`draw.node_spec_fn`) and notes (`annotate`). Knows no torch.

    draw: {node_spec_fn: {_target_: torchlens.viz.nodes.rdm, metric: cosine}}
    annotate: [{select: relu_1_2, data: {note: sparse}, image: photo.png}]

A `_target_` is a call, so the rules of model files hold: only trusted names, checked before anything runs, and where
they are really defined is checked before they are called.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import TorchLensError, error, first_line
from torchlens.runner.spec import check_home, check_targets, targets
from torchlens.settings.layers import check_keys, refuse
from torchlens.settings.options import FUNCTION, options
from torchlens.settings.plain import is_list, is_mapping

if TYPE_CHECKING:
    from torchlens.trace_view import Trace

TARGET, ARGS, PARTIAL = "_target_", "_args_", "_partial_"
# Beside what model files may call: what restyles nodes, and what names them.
TRUSTED = (
    "torchlens.viz.nodes.*",
    "torchlens.experimental.node_styles.*",
    "torchlens.records.selectors.*",
    *(f"torchlens.{name}" for name in ("func", "in_module", "label", "module")),
)
NOTE_KEYS = ("select", "data", "image")


@dataclass
class ConfiguredHook:
    """A function of the drawing that a configuration describes; made when it is first called.

    factory: the mapping with `_target_`; where: words for errors.
    """

    factory: Mapping[str, Any]
    where: str
    trust: tuple[str, ...] = ()
    _made: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.__qualname__ = str(self.factory[TARGET]).rpartition(".")[2]

    def __str__(self) -> str:
        return str(dict(self.factory))

    def __call__(self, *arguments: Any) -> Any:
        """What the function that is described returns. Raises as `make` does."""
        if self._made is None:
            made = make(self.factory, self.where, self.trust)
            if not callable(made):
                refuse(self.where, TARGET, f"{self.factory[TARGET]!r} makes a {type(made).__name__}, no function")
            self._made = made
        return self._made(*arguments)


@dataclass(frozen=True)
class Note:
    """One annotation. select: a label, an address, or the mapping of a selector; image: the path of a picture."""

    select: str | Mapping[str, Any]
    data: Any
    image: str | None
    where: str
    trust: tuple[str, ...]


def read_hooks(where: str, draw: object, trust: Sequence[str]) -> Any:
    """The draw options with hooks in place of mappings that have a `_target_`; anything else is as it was.

    Raises: ConfigError[config_target_untrusted, config_invalid].
    """
    if not is_mapping(draw):
        return draw
    table = options()
    found = dict(draw)
    for name, value in draw.items():
        option = table.get(name)
        takes = option is not None and (option.type is FUNCTION or option.calls)
        if takes and is_mapping(value) and TARGET in value:
            check_targets(where, {name: value}, (*TRUSTED, *trust))
            found[name] = ConfiguredHook(value, f"{where}.{name}", tuple(trust))
    return found


def read_notes(where: str, value: object, trust: Sequence[str]) -> tuple[Note, ...]:
    """The notes of a figure entry. Raises: ConfigError[config_target_untrusted, config_invalid]."""
    if value is None:
        return ()
    if not is_list(value):
        refuse(where, "annotate", f"is not a list but {value!r}")
    return tuple(_note(f"{where}: annotate[{k}]", item, trust) for k, item in enumerate(value))


def _note(where: str, item: object, trust: Sequence[str]) -> Note:
    keys = check_keys(where, "", item, NOTE_KEYS)
    select, data, image = (keys.get(key) for key in NOTE_KEYS)
    if is_mapping(select) and TARGET in select:
        check_targets(where, {"select": select}, (*TRUSTED, *trust))
    elif not isinstance(select, str):
        refuse(
            where, "select", "is missing: a label, an address, or a selector such as {_target_: torchlens.func, ...}"
        )
    if image is not None and not isinstance(image, str):
        refuse(where, "image", f"is not the name of a picture but {image!r}")
    if data is None and image is None:
        refuse(where, "data", "is missing, and so is image: the note says nothing")
    return Note(select, data, image, where, tuple(trust))


# -- when the model has run
def annotated(trace: Trace, notes: Sequence[Note]) -> Trace:
    """The trace with the notes attached; the one given stays as it is.

    Raises: the codes of `Trace.annotate` and of `make`.
    """
    if not notes:
        return trace
    own = copy.copy(trace)
    own.data = copy.copy(trace.data)
    own.data.annotations = copy.deepcopy(trace.data.annotations)
    for note in notes:
        select = note.select if isinstance(note.select, str) else make(note.select, note.where, note.trust)
        own.annotate(select, data=note.data, image=note.image)
    return own


def make(factory: Mapping[str, Any], where: str, trust: Sequence[str]) -> Any:
    """Call what a checked mapping names.

    Raises: ConfigError[config_target_untrusted] for a name that is defined where nobody trusts it,
    ConfigError[config_invalid] if the call fails.
    """
    from hydra.utils import instantiate

    from torchlens.runner.names import origin

    patterns = (*TRUSTED, *trust)
    try:
        for _, target in targets({"": factory}):
            check_home(where, str(target), origin(str(target)), patterns)
        return instantiate(dict(factory), _convert_="all")
    except TorchLensError:
        raise
    except Exception as exc:
        cause = exc.__cause__ or exc
        what = f"{where}: {factory[TARGET]} cannot be called: {type(cause).__name__}: {first_line(cause)}"
        raise error("config_invalid", what) from exc
