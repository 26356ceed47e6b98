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
    from torchlens.base.errors import TorchLensError, TorchLensWarning
    from torchlens.drawings import Drawing
    from torchlens.trace_view import Trace
    from torchlens.verbs import draw, trace

__version__ = "0.1.0"

_HOMES = {
    "trace": "torchlens.verbs",
    "draw": "torchlens.verbs",
    "Trace": "torchlens.trace_view",
    "Drawing": "torchlens.drawings",
    "TorchLensError": "torchlens.base.errors",
    "TorchLensWarning": "torchlens.base.errors",
}

__all__ = ["Drawing", "TorchLensError", "TorchLensWarning", "Trace", "__version__", "draw", "trace"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
