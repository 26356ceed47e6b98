"""torchlens: run a PyTorch model once, record everything it did, and draw it.

    import torchlens as tl
    trace = tl.trace(model, x)
    trace.draw("model.pdf")

Names load on first use, so importing the package imports neither torch nor any drawing library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlens import experimental, options, report, validation, viz
    from torchlens.archive import load
    from torchlens.base.errors import TorchLensError, TorchLensWarning
    from torchlens.drawings import Drawing
    from torchlens.records.selectors import func, in_module, label, module
    from torchlens.trace_view import Trace
    from torchlens.verbs import draw, trace

__version__ = "0.1.0"

_HOMES = {
    "trace": "torchlens.verbs",
    "draw": "torchlens.verbs",
    "load": "torchlens.archive",
    "Trace": "torchlens.trace_view",
    "Drawing": "torchlens.drawings",
    "module": "torchlens.records.selectors",
    "in_module": "torchlens.records.selectors",
    "func": "torchlens.records.selectors",
    "label": "torchlens.records.selectors",
    "TorchLensError": "torchlens.base.errors",
    "TorchLensWarning": "torchlens.base.errors",
}
_MODULES = ("experimental", "options", "report", "validation", "viz")

__all__ = [
    "Drawing",
    "TorchLensError",
    "TorchLensWarning",
    "Trace",
    "__version__",
    "draw",
    "experimental",
    "func",
    "in_module",
    "label",
    "load",
    "module",
    "options",
    "report",
    "trace",
    "validation",
    "viz",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"torchlens.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
