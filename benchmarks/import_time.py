"""What `import torchlens` costs, and that it pulls in nothing heavy. Exit code 1 if it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("torch", "numpy", "hydra", "omegaconf", "graphviz", "PIL", "reportlab", "rich", "networkx", "transformers")
CODE = f"""
import json, sys, time
start = time.process_time()
import torchlens
seconds = time.process_time() - start
print(json.dumps([seconds, [name for name in {HEAVY!r} if name in sys.modules]]))
"""


def main() -> int:
    runs = []
    for _ in range(10):
        command = [sys.executable, "-c", CODE]
        runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout))
    heavy = runs[0][1]
    print(f"import torchlens: {min(seconds for seconds, _ in runs) * 1e3:.1f} ms CPU, minimum of {len(runs)}")
    print(f"heavy packages imported: {', '.join(heavy) or 'none'}")
    return 1 if heavy else 0


if __name__ == "__main__":
    sys.exit(main())
