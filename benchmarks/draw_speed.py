"""What drawing costs: CPU of settings, plan, scene and DOT for a trace of about 5,000 nodes, and of a whole SVG file
for two of about 20,000, a deep stack of blocks and a chain whose input is read everywhere.

Also whether the same figure has the same bytes twice in one process and in two processes with other hash seeds.
Exit code 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

LIMIT_S = 1.5
LARGE, LARGE_LIMIT_S = 20_000, 15.0


def draw_once(ops: int, options: Mapping[str, object]) -> tuple[dict[str, float], str, int]:
    """CPU seconds per step for a newly recorded trace, the DOT text, and the number of nodes."""
    import torch

    import torchlens as tl
    from torchlens.plan import make_plan
    from torchlens.render import dot
    from torchlens.scene import build
    from torchlens.settings.compose import resolve
    from workloads import nested

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, x = nested(ops)
    with torch.no_grad():
        data = tl.trace(model.eval(), x, save="none").data
    marks = [time.process_time()]
    request = resolve(data, options)
    marks.append(time.process_time())
    plan = make_plan(data, request)
    marks.append(time.process_time())
    scene = build(plan, data, request)
    marks.append(time.process_time())
    text = dot.write(scene)
    marks.append(time.process_time())
    steps = ("settings", "plan", "scene", "dot")
    return {s: b - a for s, a, b in zip(steps, marks, marks[1:], strict=False)}, text, len(data.nodes.kind)


def draw_large(name: str) -> tuple[dict[str, float], int, int]:
    """CPU seconds of an SVG file, here and in the engine's process, its ops and its bytes."""
    import torch

    import torchlens as tl
    from torchlens.drawings import draw_trace
    from workloads import Chain, nested

    torch.manual_seed(0)
    model, x = nested(LARGE) if name == "nested" else (Chain(LARGE * 2 // 3), torch.randn(8, 8) / 8)
    with torch.no_grad():
        data = tl.trace(model.eval(), x, save="none").data
    before = os.times()
    drawing = draw_trace(data, None, {})
    content = drawing.data
    after = os.times()
    own = after.user + after.system - before.user - before.system
    engine = after.children_user + after.children_system - before.children_user - before.children_system
    return {"python": own, "engine": engine}, drawing.dot.count(' class="op"'), len(content)


def digest_elsewhere(ops: int, hash_seed: str) -> str:
    """Digest of the same figure made in a new process."""
    command = [sys.executable, __file__, "--ops", str(ops), "--digest"]
    env = os.environ | {"PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=5000, help="about how many ops (default 5000)")
    parser.add_argument("--repeats", type=int, default=3, help="traces drawn per setting (default 3)")
    parser.add_argument("--digest", action="store_true", help="only print the digest of the plain figure")
    args = parser.parse_args()

    if args.digest:
        print(hashlib.sha256(draw_once(args.ops, {})[1].encode()).hexdigest())
        return 0
    broken = []
    digests = set()
    # Times differ from run to run, so the bytes are compared on figures without them.
    for name, options in (("plain", {}), ("flops", {"color_by": "flops"}), ("speed", {"view": "speed"})):
        runs = [draw_once(args.ops, options) for _ in range(args.repeats)]
        steps = {step: min(run[0][step] for run in runs) for step in runs[0][0]}
        total = sum(steps.values())
        detail = "  ".join(f"{step} {seconds:.3f}" for step, seconds in steps.items())
        print(f"{name:6} {runs[0][2]} nodes  {detail}  together {total:.3f} s CPU  ({len(runs[0][1]) / 1e6:.1f} MB)")
        if total > LIMIT_S:
            broken.append(f"{name}: more than {LIMIT_S:g} s")
        if name != "speed" and len({run[1] for run in runs}) > 1:
            broken.append(f"{name}: the bytes differ within one process")
        if name == "plain":
            digests = {hashlib.sha256(run[1].encode()).hexdigest() for run in runs}
    for name in ("nested", "chain"):
        steps, count, size = draw_large(name)
        total = sum(steps.values())
        detail = "  ".join(f"{step} {seconds:.2f}" for step, seconds in steps.items())
        print(f"{name:6} {count} ops to SVG  {detail}  together {total:.2f} s CPU  ({size / 1e6:.1f} MB)")
        if total > LARGE_LIMIT_S:
            broken.append(f"{name}: more than {LARGE_LIMIT_S:g} s")
    digests |= {digest_elsewhere(args.ops, seed) for seed in ("1", "2")}
    if len(digests) > 1:
        broken.append("plain: the bytes differ between processes")
    print("\n".join(broken) if broken else "within the limits; the bytes repeat")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
