"""The shape of the configuration as Hydra checks it: which keys exist. Which values are right is for the settings.

Every key starts missing, so that a group file may leave it out, the command line can still set it, and an explicit
null differs from nothing. Generated from the options, theme and view declarations; nothing is listed twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from torchlens.runner.figures import FIGURE_KEYS
from torchlens.runner.input_spec import INPUT_KEYS
from torchlens.runner.spec import MODEL_KEYS
from torchlens.settings import theme, view
from torchlens.settings.options import options

NAME = "torchlens_schema"
CAPTURE_KEYS = ("timings",)


def _node(name: str, keys: Iterable[str], **nested: type[Any]) -> type[Any]:
    """A dataclass with these keys, all missing; nested ones are nodes of their own."""
    columns: list[tuple[str, Any, Any]] = [(key, Any, field(default=MISSING)) for key in keys if key not in nested]
    columns += [(key, kind, field(default_factory=kind)) for key, kind in nested.items()]
    kind = make_dataclass(name, columns)
    # Launchers pickle the configuration to other processes, and a class is found again by module and name.
    kind.__module__ = __name__
    globals()[name] = kind
    return kind


def _style(kind: type[Any]) -> type[Any]:
    return _node(f"{kind.__name__}Node", [item.name for item in fields(kind)])


Draw = _node("Draw", options())
Layer = _node("Layer", (), draw=Draw)
Model = _node("Model", MODEL_KEYS)
Input = _node("Input", INPUT_KEYS)
View = _node("View", view.KEYS, draw=Draw)
_Roles = _node("Roles", (), **dict.fromkeys(theme.ROLES, _style(theme.RoleStyle)))
_Edges = _node("Edges", (), **dict.fromkeys(theme.EDGES, _style(theme.EdgeStyle)))
Theme = _node(
    "Theme",
    theme.KEYS,
    page=_style(theme.PageStyle),
    fonts=_style(theme.FontSizes),
    roles=_Roles,
    edges=_Edges,
    draw=Draw,
)
Figure = _node("Figure", FIGURE_KEYS, draw=Draw)
Capture = _node("Capture", CAPTURE_KEYS)


@dataclass
class Config:
    """The whole configuration of one job."""

    model: Model = field(default_factory=Model)  # type: ignore[valid-type]
    input: Input = field(default_factory=Input)  # type: ignore[valid-type]
    view: View = field(default_factory=View)  # type: ignore[valid-type]
    theme: Theme = field(default_factory=Theme)  # type: ignore[valid-type]
    collapse: Layer = field(default_factory=Layer)  # type: ignore[valid-type]
    encoding: Layer = field(default_factory=Layer)  # type: ignore[valid-type]
    draw: Draw = field(default_factory=Draw)  # type: ignore[valid-type]
    figures: dict[str, Figure | None] = field(default_factory=dict)  # type: ignore[valid-type]
    capture: Capture = field(default_factory=Capture)  # type: ignore[valid-type]
    out: Any = MISSING
    formats: Any = MISSING
    trust: Any = MISSING
    threads: Any = None
    explain: Any = False
    resume: Any = False
    refreeze: Any = False
    check: Any = False


def register() -> None:
    """Make the schema known to Hydra. May be called again, and costs nothing then."""
    store = ConfigStore.instance()
    if f"{NAME}.yaml" not in store.repo:
        store.store(name=NAME, node=Config)
