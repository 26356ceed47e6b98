"""What the command line costs before it draws, as CPU time (user and system, medians). Exit code 1 above a limit.

`--help`, `explain=true` with one figure and with a set, and what each further job of a sweep adds: the difference of a
long and a short sweep over a setting that changes nothing, per job, less the time of recording and drawing it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPEATS, FEW, MANY = 5, 2, 22
LIMITS = {"--help": 0.2, "explain=true": 0.7, "a further job": 0.3}
# Recording and drawing alone, after everything is imported.
DRAW = f"""
import time, torch
from torchlens.examples.mlp import Mlp
from torchlens.verbs import trace
def once():
    torch.manual_seed(0)
    trace(Mlp(8, 16, 4, 0.1), torch.rand(2, 8)).draw("alone.dot")
once()
start = time.process_time()
for _ in range({MANY}):
    once()
print((time.process_time() - start) / {MANY})
"""


def cpu(words: list[str], folder: Path) -> float:
    """CPU seconds of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        check=True,
        capture_output=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median(words: list[str], folder: Path) -> float:
    return statistics.median(cpu(["-m", "torchlens.run", *words], folder) for _ in range(REPEATS))


def sweep(jobs: int, folder: Path) -> float:
    return median(["-m", f"draw.dpi=range(72,{72 + jobs})", "model=mlp", "formats=[dot]", f"out=o{jobs}"], folder)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone = subprocess.run(
            [sys.executable, "-c", DRAW], check=True, capture_output=True, text=True, cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        found = {
            "--help": median(["--help"], folder),
            "explain=true": median(["explain=true"], folder),
            "explain=true figures=tour": median(["figures=tour", "explain=true"], folder),
            "a further job": (sweep(MANY, folder) - sweep(FEW, folder)) / (MANY - FEW) - float(alone.stdout),
        }
    for what, seconds in found.items():
        limit = f", at most {LIMITS[what]:g} s" if what in LIMITS else ""
        print(f"{what:<28}{seconds:6.3f} s CPU{limit}")
    return int(any(found[what] > limit for what, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
