"""What importing costs and what it must leave intact."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "numpy", "hydra", "omegaconf", "graphviz", "PIL", "reportlab", "rich", "networkx", "transformers")


def run(code: str) -> object:
    """The JSON that a new process prints last."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_import_pulls_in_nothing_heavy():
    code = f"import json, sys, torchlens; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    assert run(code) == []


def test_listing_the_names_pulls_in_nothing_heavy():
    code = f"import json, sys, torchlens; dir(torchlens); print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    assert run(code) == []


def test_the_folder_of_pictures_pulls_in_nothing_heavy():
    code = "import json, sys, torchlens; torchlens.viz, torchlens.experimental, torchlens.func; dir(torchlens.viz); "
    code += f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    assert run(code) == []


def test_drawing_pulls_in_no_torch():
    code = """
import json, sys
import torchlens.plan, torchlens.render.dot, torchlens.scene, torchlens.settings.compose
print(json.dumps([m for m in ("torch", "hydra") if m in sys.modules]))
"""
    assert run(code) == []


def test_public_callables_survive_the_import_of_every_submodule():
    code = """
import importlib, json, pkgutil
import torchlens
seen = 0
for info in pkgutil.walk_packages(torchlens.__path__, "torchlens."):
    if info.name != "torchlens.run" and not info.name.startswith("torchlens.conf"):
        importlib.import_module(info.name)
        seen += 1
modules = [name for name in torchlens.__all__ if type(getattr(torchlens, name)).__name__ == "module"]
dead = [n for n in torchlens.__all__ if n[0] != "_" and n not in modules and not callable(getattr(torchlens, n))]
print(json.dumps([seen, modules, dead]))
"""
    seen, modules, dead = run(code)
    assert seen > 40
    assert set(modules) == {"experimental", "options", "report", "validation", "viz"}
    assert dead == []


def test_unknown_name_is_an_attribute_error():
    code = """
import json, torchlens
try:
    torchlens.no_such_name
except AttributeError as problem:
    print(json.dumps("no_such_name" in str(problem)))
"""
    assert run(code) is True
