"""Pictures beyond the plain graph: the finished drawing, hooks that restyle nodes, grids, keys and schedules.

Names load on first use, so that importing it imports neither torch nor an image library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlens.drawings import Drawing
    from torchlens.scene.node_spec import NodeSpec
    from torchlens.viz import nodes
    from torchlens.viz.grids import feature_maps
    from torchlens.viz.sheets import Diagram, legend, schedule

_HOMES = {
    "Diagram": "torchlens.viz.sheets",
    "Drawing": "torchlens.drawings",
    "NodeSpec": "torchlens.scene.node_spec",
    "feature_maps": "torchlens.viz.grids",
    "legend": "torchlens.viz.sheets",
    "schedule": "torchlens.viz.sheets",
}

__all__ = ["Diagram", "Drawing", "NodeSpec", "feature_maps", "legend", "nodes", "schedule"]


def __getattr__(name: str) -> Any:
    if name == "nodes":
        return import_module("torchlens.viz.nodes")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
