"""Branch tests: tensors that Python code turned into a bool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class BranchTest:
    """One conversion of a tensor to a bool. node: index of the op whose tensor was tested."""

    node: int
    construct: str
    value: bool
    file: str
    line: int
