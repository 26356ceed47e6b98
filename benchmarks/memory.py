"""Peak memory of recording with values kept, against a run that keeps every output by hooks.

Each run is a process of its own; what is compared is how far its peak resident memory rises above where it stood after
a plain warm-up forward. The modes take turns and the minimum of each counts. `calls` keeps the output of every torch
call and clones those that are written in place; `hooks` does so for the output of every module, and so lacks what
stands between modules, like the `out += identity` of a residual block. Exit code 1 if recording takes more than 5 %
above `calls`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

HERE = Path(__file__).resolve().parent
LIMIT = 1.05
BATCH = 4
MODELS = ("resnet18", "convnext_tiny")
MODES = ("plain", "hooks", "calls", "trace", "facts")


def build(name: str) -> nn.Module:
    """The model in evaluation mode."""
    torch.manual_seed(0)
    if name == "resnet18":
        from torchvision.models import resnet18

        return resnet18(weights=None).eval()
    from timm import create_model

    return create_model(name, pretrained=False).eval()


def run_plain(model: nn.Module, x: torch.Tensor) -> object:
    return model(x)


def run_hooks(model: nn.Module, x: torch.Tensor) -> object:
    """Keep what every module without children returns; a copy of it where the module works in place."""
    kept: list[object] = []

    def keep(module: nn.Module, args: object, out: object) -> None:
        in_place = getattr(module, "inplace", False)
        kept.append(out.detach().clone() if in_place else out.detach())

    hooks = [module.register_forward_hook(keep) for module in model.modules() if not list(module.children())]
    result = model(x)
    for hook in hooks:
        hook.remove()
    return kept, result


class KeepCalls(TorchFunctionMode):
    """Keeps what every torch call returns; a copy of it where the call works in place."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[torch.Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        target = args[0] if args and isinstance(args[0], torch.Tensor) else None
        before = None if target is None else target._version
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not isinstance(out, nn.Parameter):
            written = out is target and target._version != before
            self.kept.append(out.detach().clone() if written else out.detach())
        return out


def run_calls(model: nn.Module, x: torch.Tensor) -> object:
    mode = KeepCalls()
    with mode:
        result = model(x)
    return mode.kept, result


def run_trace(model: nn.Module, x: torch.Tensor) -> object:
    import torchlens as tl

    return tl.trace(model, x, save="all")


def run_facts(model: nn.Module, x: torch.Tensor) -> object:
    import torchlens as tl

    return tl.trace(model, x, save="none")


RUNS: dict[str, Callable[[nn.Module, torch.Tensor], object]] = {
    "plain": run_plain, "hooks": run_hooks, "calls": run_calls, "trace": run_trace, "facts": run_facts,
}  # fmt: skip


def status(key: str) -> int:
    """Bytes of one line of the process's own memory report."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"this system does not report {key}")


def measure(mode: str, name: str, *, grad: bool) -> int:
    """Bytes by which the peak of one run rises above the memory in use before it."""
    torch.set_num_threads(1)
    model, x = build(name), torch.randn(BATCH, 3, 224, 224)
    # What is loaded and cached by the first run of either kind is not what keeping values costs.
    small = torch.randn(1, 3, 64, 64)
    with torch.set_grad_enabled(grad):
        model(x)
        RUNS[mode](model, small)
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = status("VmRSS")
        result = RUNS[mode](model, x)
        peak = status("VmHWM")
    del result
    return peak - before


def ask(mode: str, name: str, *, grad: bool) -> int:
    """The measurement in a fresh process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", mode, name] + (["--grad"] if grad else [])
    env = os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    # Every tensor of some size is mapped by itself and given back when freed, so that the peak is that of live memory.
    env |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "0"}
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(answer.stderr)
    return int(json.loads(answer.stdout.splitlines()[-1]))


def compare(name: str, repeats: int, *, grad: bool) -> float:
    """Print the peaks of one model; gives that of recording over that of keeping the output of every call."""
    best: dict[str, int] = {}
    for _ in range(repeats):
        for mode in MODES:
            best[mode] = min(ask(mode, name, grad=grad), best.get(mode, sys.maxsize))
    cells = "  ".join(f"{mode} {best[mode] / 1e6:7.1f}" for mode in MODES)
    over_hooks, over_calls = best["trace"] / best["hooks"], best["trace"] / best["calls"]
    print(
        f"{name:14} {'grad' if grad else 'no grad':8} {cells}  /hooks {over_hooks:.3f}  /calls {over_calls:.3f}",
        flush=True,
    )
    return over_calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, metavar=("MODE", "MODEL"), help="measure one run in this process")
    parser.add_argument("--grad", action="store_true", help="with --one: record with gradients")
    parser.add_argument("--repeats", type=int, default=3, help="processes per mode (default 3)")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, help="models to measure")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one, grad=args.grad)))
        return 0
    print(f"MB of peak resident memory above the start, batch {BATCH}, minimum")
    ratios = {(name, grad): compare(name, args.repeats, grad=grad) for name in args.only for grad in (False, True)}
    broken = [
        f"{name}{', with gradients' if grad else ''}: more than {LIMIT:g} times the memory of keeping every output"
        for (name, grad), ratio in ratios.items()
        if ratio > LIMIT
    ]
    print("\n".join(broken) if broken else "within the limit")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
