"""Options as objects: `tl.options.CaptureOptions`, and what a `save=` predicate is told."""

from __future__ import annotations

from torchlens.settings.capture_options import CaptureOptions, OpFacts

__all__ = ["CaptureOptions", "OpFacts"]
