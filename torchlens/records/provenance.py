"""Where a trace came from: its input, its environment, and how the run ended."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class InputProvenance:
    """Origin of the input values: user (given), declared (input_shape=) or inferred.

    lazy_transitions: addresses of the lazy parameters that took their shape from this input.
    """

    origin: str = "user"
    tensors: tuple[tuple[tuple[int, ...] | None, str, str], ...] = ()
    recipe: str = ""
    seed: int | None = None
    lazy_transitions: tuple[str, ...] = ()


@dataclass(slots=True)
class Environment:
    """Versions and device facts that a measured number depends on."""

    torch: str = ""
    torchlens: str = ""
    python: str = ""
    platform: str = ""
    threads: int = 0


@dataclass(slots=True)
class Outcome:
    """How the run ended. completed is False on the partial trace of a forward that raised."""

    completed: bool = True
    error: str = ""
    values_kept: bool = False
    advisories: list[str] = field(default_factory=list)
