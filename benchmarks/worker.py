"""Times one command per line of standard input: `plain NAME`, `none NAME`, `all NAME` or `peer NAME`.

Runs in any interpreter that has torch and a package called torchlens, so that ours and another one are timed by the
same code. Answers with one JSON line: CPU seconds of this thread, and the number of recorded ops where it is known; or
the error, if the model cannot be built or run here.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
import warnings

import torch

import torchlens as tl
from workloads import Workload, build


def _run(mode: str, workload: Workload) -> tuple[float, object]:
    model, x = workload
    options = {} if mode == "peer" else {"save": mode}
    gc.collect()
    with torch.no_grad():
        start = time.thread_time()
        result = model(x) if mode == "plain" else tl.trace(model, x, **options)
        return time.thread_time() - start, result


def _count_ops(mode: str, result: object) -> int | None:
    if mode not in ("none", "all"):
        return None
    return sum(kind == "op" for kind in result.data.nodes.kind)


def _answer(mode: str, name: str, workloads: dict[str, Workload]) -> dict[str, object]:
    try:
        if name not in workloads:
            workloads[name] = build(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, result = _run(mode, workloads[name])
    except Exception as problem:  # noqa: BLE001 - the one who asked decides what it means
        return {"error": f"{type(problem).__name__}: {problem}"}
    return {"seconds": seconds, "ops": _count_ops(mode, result)}


def main() -> None:
    torch.set_num_threads(1)
    # Whatever the timed code prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    workloads: dict[str, Workload] = {}
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            mode, name = line.split()
            answers.write(json.dumps(_answer(mode, name, workloads)) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
