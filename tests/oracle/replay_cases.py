"""Replay a folder of case files: `python -m tests.oracle.replay_cases FOLDER`.

A case file holds `case()`, which gives (model, args, kwargs), and may hold EXPECT with the name of the exception that
the forward raises.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch

import torchlens as tl


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reports(folder: Path) -> Iterator[tuple[str, object]]:
    """Name of each case and its report, or the exception that its forward raises as it should."""
    for path in sorted(folder.glob("c*_*.py")):
        case = load(path)
        model, args, kwargs = case.case()
        wanted = getattr(case, "EXPECT", {}).get("raises")
        torch.manual_seed(0)
        try:
            yield path.stem, tl.validation.validate_forward_pass(model, tuple(args), input_kwargs=kwargs, budget=3)
        except Exception as error:
            if type(error).__name__ != wanted:
                raise
            yield path.stem, error


if __name__ == "__main__":
    bad = 0
    for name, report in reports(Path(sys.argv[1])):
        print(name, report, flush=True)
        bad += not getattr(report, "ok", True)
    sys.exit(bad > 0)
