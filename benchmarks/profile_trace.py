"""Where the time of a recording goes: CPU per op by stage and by function of ours, from samples of the stack.

A timer of the process's CPU time interrupts the recording; the innermost frame says whose time it was. Python sees an
interrupt when a C call has returned, and is then still at the line of the call: samples at a line that calls torch's
function count as torch's own work. Unix only.
"""

from __future__ import annotations

import argparse
import collections
import linecache
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

MODELS = ("rnn", "chain50k", "resnet50", "vit_b_16", "gpt2_tiny")
OURS = str(ROOT / "torchlens")
INTERVAL_S = 0.001
# The innermost of these functions on the stack says which stage a sample belongs to.
STAGES = {
    "__torch_function__": "handler",
    "run_script": "handler",
    "pass_door": "doors",
    "run_module": "module calls",
    "build": "finish",
    "complete": "finish",
}
TORCH, MODEL = "torch's own work", "the model's Python"
# How a line of ours reads that hands a call on to torch.
CALLS = ("= func(*args", "return func(*args", "= info.func(*args")


class Sampler:
    """Counts samples by stage and function while it is entered."""

    def __init__(self) -> None:
        self.stages: collections.Counter[str] = collections.Counter()
        self.functions: collections.Counter[tuple[str, str]] = collections.Counter()

    def __enter__(self) -> Sampler:
        signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def _take(self, _number: int, frame: types.FrameType | None) -> None:
        if frame is None or not frame.f_code.co_filename.startswith(OURS):
            self.stages[MODEL] += 1
            return
        if any(call in linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0) for call in CALLS):
            self.stages[TORCH] += 1
            return
        function = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname.rpartition('<locals>.')[2]}"
        stage = "start and end"
        while frame is not None:
            name = frame.f_code.co_name
            if name in STAGES and frame.f_code.co_filename.startswith(OURS):
                stage = STAGES[name]
                break
            frame = frame.f_back
        self.stages[stage] += 1
        self.functions[stage, function] += 1


def profile(name: str, save: str, seconds: float, top: int) -> None:
    """Record one workload for about that long and print where the time went."""
    import torch

    import torchlens as tl
    from workloads import build

    torch.set_num_threads(1)
    model, x = build(name)
    with torch.no_grad():
        plain = min(_cpu(lambda: model(x)) for _ in range(3))
        trace = tl.trace(model, x, save=save)
        sampler, runs, used = Sampler(), 0, 0.0
        while used < seconds:
            with sampler:
                start = time.process_time()
                trace = tl.trace(model, x, save=save)
                used += time.process_time() - start
            runs += 1
    ops, calls = len(trace), len(trace.module_calls)
    # One sample is worth what was used by all samples; per op of one recording.
    unit = used / max(1, sampler.stages.total()) / runs / ops * 1e6
    print(f"\n{name}, save={save}: {ops} ops, {calls} module calls, {sampler.stages.total()} samples of {runs} runs")
    each = used / runs
    print(f"  plain {plain * 1e3:.1f} ms, recorded {each * 1e3:.1f} ms CPU: {each / ops * 1e6:.2f} us per op, of which")
    for stage, samples in sampler.stages.most_common():
        print(f"  {samples * unit:9.2f} us  {stage}")
        mine = [(count, function) for (at, function), count in sampler.functions.items() if at == stage]
        for count, function in sorted(mine, reverse=True)[:top]:
            print(f"    {count * unit:9.2f} us  {function}")


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, help="models to profile")
    parser.add_argument("--save", choices=("none", "all"), default="none", help="what to keep (default none)")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds per model (default 4)")
    parser.add_argument("--top", type=int, default=6, help="functions per stage (default 6)")
    args = parser.parse_args()
    for name in args.only:
        profile(name, args.save, args.seconds, args.top)
    return 0


if __name__ == "__main__":
    sys.exit(main())
