"""What recording costs: CPU per op above the plain forward, ratio to a plain forward, growth with the number of ops.

The plain run, recording of facts only (`save="none"`), recording of values (`save="all"`) and, with --peer, the
package of another interpreter take turns; the minimum of each is compared. Exit code 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_US = 20.0
LIMIT_GROWTH = 1.25
MODELS = ("rnn", "chain2k", "chain5k", "chain20k", "chain50k", "resnet50", "vit_b_16", "gpt2_tiny")
GROWTH = ("chain5k", "chain20k", "chain50k")
# Longer chains take another recorder minutes.
PEER_MODELS = ("rnn", "chain2k", "resnet50", "vit_b_16", "gpt2_tiny")


class Worker:
    """A process that times one run per request, in the given interpreter."""

    def __init__(self, python: str, path: Path | None) -> None:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        if path is not None:
            env["PYTHONPATH"] = str(path)
        self._process = subprocess.Popen(
            [python, str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env | {"OMP_NUM_THREADS": "1"},
        )

    def time(self, mode: str, model: str) -> tuple[float, int | None]:
        """CPU seconds of one run, and the number of ops it recorded. Raises RuntimeError if the run failed."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{mode} {model}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process died"}
        if "error" in answer:
            raise RuntimeError(f"{mode} {model}: {answer['error']}")
        return answer["seconds"], answer["ops"]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def measure(model: str, ours: Worker, peer: Worker | None, repeats: int) -> dict[str, float]:
    """Minimum CPU seconds per mode, in turns; the first round only warms up. ops: how many were recorded."""
    plan = [(ours, "plain"), (ours, "none"), (ours, "all")]
    best: dict[str, float] = {}
    for turn in range(repeats + 1):
        for worker, mode in plan:
            seconds, ops = worker.time(mode, model)
            best["ops"] = ops or best.get("ops", 0)
            if turn:
                best[mode] = min(seconds, best.get(mode, seconds))
        # The other recorder is slow enough that two rounds tell.
        if peer and model in PEER_MODELS and 1 <= turn <= 2:
            peer = peer if measure_peer(model, peer, best) else None
    return best


def measure_peer(model: str, peer: Worker, best: dict[str, float]) -> bool:
    """One turn of the other package; False, with a word about it, if it cannot run the model."""
    try:
        for mode, key in (("plain", "peer plain"), ("peer", "peer")):
            seconds, _ = peer.time(mode, model)
            best[key] = min(seconds, best.get(key, seconds))
    except RuntimeError as problem:
        print(f"{model:10} not with the other package: {problem}")
        best.pop("peer plain", None)
        return False
    return True


def overhead_us(best: dict[str, float], mode: str) -> float:
    """Microseconds per recorded op above the plain forward."""
    plain = best["peer plain" if mode == "peer" else "plain"]
    return (best[mode] - plain) / best["ops"] * 1e6


def row(model: str, best: dict[str, float]) -> str:
    """One line of the table."""
    cells = [f"{model:10}", f"{best['ops']:6.0f}", f"{best['plain'] * 1e3:9.1f}"]
    for mode in ("none", "all"):
        cells += [f"{best[mode] * 1e3:9.1f}", f"{best[mode] / best['plain']:6.2f}", f"{overhead_us(best, mode):7.1f}"]
    if "peer" in best:
        cells += [f"{best['peer'] * 1e3:10.1f}", f"{best['peer'] / best['peer plain']:8.2f}"]
        cells += [f"{overhead_us(best, 'peer'):9.1f}", f"{best['peer'] / best['all']:8.1f}"]
    return " ".join(cells)


def judge(results: dict[str, dict[str, float]]) -> list[str]:
    """The limits that are broken, in words."""
    broken = []
    for model in ("rnn", "chain50k"):
        modes = [mode for mode in ("none", "all") if model in results and overhead_us(results[model], mode) > LIMIT_US]
        broken += [f"{model}, save={mode}: more than {LIMIT_US:g} us per op" for mode in modes]
    if all(model in results for model in GROWTH):
        for mode in ("none", "all"):
            costs = [overhead_us(results[model], mode) for model in GROWTH]
            print(f"growth of the cost per op, save={mode}: " + " -> ".join(f"{cost:.1f} us" for cost in costs))
            if costs[-1] > LIMIT_GROWTH * costs[0]:
                broken.append(f"save={mode}: the cost per op grows with the number of ops")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="Python interpreter with another package called torchlens")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs per mode (default 5)")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, help="models to time")
    args = parser.parse_args()

    ours = Worker(sys.executable, HERE.parent)
    peer = Worker(args.peer, None) if args.peer else None
    print("CPU ms of the thread, minimum; x = ratio to the plain forward; us = per op above the plain forward")
    head = f"{'model':10} {'ops':>6} {'plain':>9} {'facts':>9} {'x':>6} {'us':>7} {'values':>9} {'x':>6} {'us':>7}"
    print(head + (f" {'peer':>10} {'x':>8} {'us':>9} {'/values':>8}" if peer else ""))
    results: dict[str, dict[str, float]] = {}
    for model in args.only:
        results[model] = measure(model, ours, peer, args.repeats)
        print(row(model, results[model]), flush=True)
    for worker in filter(None, (ours, peer)):
        worker.close()
    broken = judge(results)
    print("\n".join(broken) if broken else "within the limits")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
