"""Records and replays the models of torchvision, timm and transformers: one process each, with limits.

Every result is one JSON line in the results file, so that a run that was stopped goes on where it was; `--table`
writes the lines as the page docs/coverage.md. Exit code 1 if a model failed. Not part of CI: it takes hours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

RESULTS = ROOT / "outputs" / "coverage.jsonl"
PAGE = ROOT / "docs" / "coverage.md"
MEMORY_GB = 18
SECONDS = 900
SETS = ("transformers", "torchvision", "timm")
Row = dict[str, Any]

# Why a model fails, or what is odd about it; printed beside the table.
EXPLAINED: dict[str, str] = {}


# -- one model, in a process of its own
def prove(group: str, name: str, *, perturb: bool) -> Row:
    """Record a model, check the trace, replay it: counts and the failures, if any."""
    import torch

    import torchlens as tl
    from coverage_models import build
    from torchlens.validation import validate_forward_pass

    torch.set_num_threads(1)
    model, args, kwargs = build(group, name)
    row: Row = {"set": group, "model": name, "params": sum(p.numel() for p in model.parameters())}
    with torch.no_grad():
        start = time.perf_counter()
        torch.manual_seed(1)
        trace = tl.trace(model, args, input_kwargs=kwargs, save="none")
        row["record_s"] = time.perf_counter() - start
        trace.check()
        row |= {"ops": len(trace), "layers": len(trace.layers), "module_calls": len(trace.module_calls)}
        row["constants"] = trace.data.nodes.kind.count("constant")
        row["orphans"] = len(trace.orphans)
        torch.manual_seed(1)
        report = validate_forward_pass(model, args, input_kwargs=kwargs, perturb=perturb)
    row |= {
        "result": "ok" if report.ok else "differs",
        "replayed": report.replayed,
        "ancestors": list(report.ancestors),
        "not_compared": dict(Counter(entry.reason for entry in report.not_compared)),
        "arguments": report.arguments,
        "unshown": Counter(entry.by for entry in report.unshown),
        "detail": "; ".join(map(str, report.failures[:3])),
        "failures": len(report.failures),
        "notes": report.notes,
    }
    return row


def limit_memory() -> None:
    """Let an allocation fail rather than the machine."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_GB << 30, MEMORY_GB << 30))


def run_alone(group: str, name: str, *, perturb: bool) -> Row:
    """The row of one model from a new process; what became of the process, if it gave none."""
    command = [sys.executable, "-W", "ignore", __file__, "--alone", group, name]
    start = time.perf_counter()
    row: Row = {"set": group, "model": name}
    try:
        done = subprocess.run(
            command if perturb else [*command, "--no-perturb"],
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            row = json.loads(lines[-1])
        else:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            memory = "can't allocate memory" in done.stderr or "MemoryError" in done.stderr
            row |= {"result": "memory" if memory else "error", "detail": last[:300]}
    except subprocess.TimeoutExpired:
        row |= {"result": "time", "detail": f"more than {SECONDS} s"}
    return row | {"seconds": round(time.perf_counter() - start, 1)}


# -- all of them
def wanted(sets: list[str]) -> Iterator[tuple[str, str]]:
    """Every model of the chosen sets."""
    from coverage_models import SETS as BUILDERS

    for group in sets:
        for name in BUILDERS[group][0]():
            yield group, name


def read(path: Path) -> dict[tuple[str, str], Row]:
    """The last row of each model."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(row["set"], row["model"]): row for row in rows}


def go_on(path: Path, args: argparse.Namespace) -> None:
    """Prove every model that has no row yet, or has a bad one and is to be tried again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read(path)
    for group, name in wanted(args.sets):
        old = known.get((group, name))
        skip = old is not None and not (args.retry and old["result"] != "ok")
        if skip or (args.only and not any(part in name for part in args.only)):
            continue
        row = run_alone(group, name, perturb=not args.no_perturb)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['result']:8} {group}/{name} {row.get('ops', '')} ops {row['seconds']} s {row.get('detail', '')}",
            flush=True,
        )


# -- the page
HEAD = """# Coverage

What `benchmarks/coverage.py` found: each model is built with random weights, in evaluation mode and without gradients,
on a small input; it is recorded, `trace.check()` is asked, and `tl.validation.validate_forward_pass` replays it: every
op is called again on what its recorded arrows lead to, outputs and a sample of other nodes are computed from their
recorded ancestors alone, and the run is compared with plain runs. *ok* means that nothing disagreed. *Replayed* counts
the ops that were called again and compared; the rest cannot be compared, mostly uninitialized memory.

"""
RESULT_WORDS = {"ok": "ok", "differs": "differs", "error": "error", "memory": "out of memory", "time": "out of time"}


def page(rows: list[Row]) -> str:
    """The rows as Markdown: a summary, one table per set, then the explanations."""
    parts = [HEAD, _versions(), "\n\n", _summary(rows)]
    for group in SETS:
        mine = [row for row in rows if row["set"] == group]
        if mine:
            parts += [f"\n## {group}\n\n", "| model | params | ops | layers | replayed | result | seconds |\n"]
            parts += ["|---|---:|---:|---:|---:|---|---:|\n", *map(_line, mine)]
    bad = [row for row in rows if row["result"] != "ok"]
    if bad:
        parts.append("\n## What failed\n\n")
        parts += [f"- `{row['model']}`: {EXPLAINED.get(row['model'], row.get('detail', ''))}\n" for row in bad]
    return "".join(parts)


def _versions() -> str:
    from importlib.metadata import version

    return "Run with " + ", ".join(f"{name} {version(name)}" for name in ("torch", *SETS)) + ", on a CPU."


def _summary(rows: list[Row]) -> str:
    lines = ["| set | models | ok | ops | ops replayed |\n|---|---:|---:|---:|---:|\n"]
    for group in SETS:
        mine = [row for row in rows if row["set"] == group]
        ops, replayed = (sum(row.get(key, 0) for row in mine) for key in ("ops", "replayed"))
        good = sum(row["result"] == "ok" for row in mine)
        lines.append(f"| {group} | {len(mine)} | {good} | {ops:,} | {replayed:,} |\n")
    return "".join(lines)


def _line(row: Row) -> str:
    params = f"{row['params'] / 1e6:.2f} M" if "params" in row else ""
    cells = [row.get("ops", ""), row.get("layers", ""), row.get("replayed", ""), RESULT_WORDS[row["result"]]]
    return f"| {row['model']} | {params} | {' | '.join(map(str, cells))} | {row['seconds']:.0f} |\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="libraries (default all)")
    parser.add_argument("--only", nargs="+", help="models whose name contains one of these")
    parser.add_argument("--retry", action="store_true", help="try again what is not ok")
    parser.add_argument("--no-perturb", action="store_true", help="do not show that each argument matters: faster")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of JSON lines")
    parser.add_argument("--table", action="store_true", help="only write docs/coverage.md from the results")
    parser.add_argument("--alone", nargs=2, metavar=("SET", "MODEL"), help=argparse.SUPPRESS)
    args = parser.parse_args()

    if args.alone:
        limit_memory()
        print(json.dumps(prove(*args.alone, perturb=not args.no_perturb)))
        return 0
    if not args.table:
        go_on(args.results, args)
    known = read(args.results)
    rows = [known[key] for key in wanted(list(SETS)) if key in known]
    PAGE.write_text(page(rows))
    bad = [row for row in rows if row["result"] != "ok"]
    print(f"{len(rows) - len(bad)} of {len(rows)} models ok; wrote {PAGE.relative_to(ROOT)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
