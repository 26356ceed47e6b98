"""The text of `--help`: groups with their names, options, examples. Lists folders and reads no YAML, so it is quick."""

from __future__ import annotations

from collections.abc import Sequence

from torchlens.settings import catalog
from torchlens.settings.options import document

_HEAD = """torchlens records one forward pass of a PyTorch model and draws it.

usage: python -m torchlens.run [flags] [group=name ...] [key=value ...]
       torchlens [flags] [group=name ...] [key=value ...]

Each group chooses one file of the configuration; a folder of your own adds names to it (--config-dir). Settings fold in
this order, the last one wins: theme < view < collapse < encoding < figure < draw.<option>= on the command line.

GROUPS
"""
_KEYS = """KEYS
  out=DIR              folder of the figures and of manifest.json (default: outputs/<date>/<time>)
  formats=[svg,pdf]    files of each figure: svg, png, jpg, pdf, dot; default: svg, and png unless it is too large
  resume=true          leave out the jobs that an earlier run into out= finished
  check=true           draw into a temporary folder and tell which figures in out= differ
  capture.timings=frozen  draw the times kept beside the figures; refreeze=true measures them again
  explain=true         print who sets which option, and run nothing
  trust=[pkg.*]        further names that a model's factory may call
  threads=N            threads of torch
  model.factory.K=V    an argument of the model's constructor (+model.factory.K=V if its file does not name it)
  model.checkpoint=F   weights of a file (.pt, .safetensors), of which no code is run
  input.shape=[..]     another input shape; also input.dtype, input.low, input.high
  input.path=FILE      tensors (.pt, .npy) or a picture; input.text=TEXT, input.kwargs.NAME=VALUE
  theme.page.K=V       one value of the theme, such as theme.page.background=ivory

OPTIONS of the drawing, as draw.<option>=VALUE; null switches off what a view or theme sets
"""
_TAIL = """
FLAGS
  -m, --multirun       run every combination of comma-separated values, each in a folder of its own
  -cd, --config-dir D  a folder with views/, themes/, models/ ... of your own; may be repeated
  -cn, --config-name N a primary configuration of your own, from a --config-dir
  --cfg job            print the composed configuration
  --version, --hydra-help, --info, --shell-completion

EXAMPLES
  python -m torchlens.run
  python -m torchlens.run model=resnet18 view=speed theme=paper
  python -m torchlens.run model=resnet18 draw.depth=1 formats=[pdf]
  python -m torchlens.run view=speed draw.color_by=null explain=true
  python -m torchlens.run figures=tour out=outputs/tour
  python -m torchlens.run -m model=rnn,mlp theme=paper,dark
  python -m torchlens.run --config-dir mydir model=mine 'trust=[mypackage.*]'

Exit codes: 0 all figures written, 1 some figure failed, 2 bad configuration (nothing ran), 130 interrupted.
"""


def text(extra: Sequence[str] = ()) -> str:
    """The whole help text. extra: the folders of --config-dir, whose names are listed too."""
    groups = "\n".join(_group(group, extra) for group in catalog.GROUPS)
    options = "\n".join(f"  {line}" for line in document().splitlines())
    return f"{_HEAD}{groups}\n{_KEYS}{options}\n{_TAIL}"


def _group(group: str, extra: Sequence[str]) -> str:
    rows: list[str] = []
    for name in catalog.names(group, extra):
        line = catalog.question(catalog.find(group, name, extra)[0]).removeprefix(f"{name}: ")
        rows.append(f"    {name:<14} {line}".rstrip())
    return f"  {group}=\n" + "\n".join(rows) + "\n"
