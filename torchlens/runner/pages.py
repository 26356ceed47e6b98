"""Keeps a page of the documentation in step with a set of figures: `python -m torchlens.runner.pages docs/reading.md`.

The page is written by hand, except for what stands between `<!-- kind: name -->` and `<!-- end -->`:

    setup: NAME      of the set of figures; the imports that the page's Python needs
    figure: NAME     a figure, the Python that draws it and the command that does
    source: NAME     the code of an example, by its dotted name
    options: NAME    of the same set; a table of the options that none of its figures uses

The Python is worked out from the same entry that the runner draws. The lines that record are written where the
recording is another one than that of the figure above, so the page's Python runs from top to bottom.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchlens.base.files import write_atomically
from torchlens.runner.commands import command
from torchlens.runner.python_calls import call, imports, recording
from torchlens.settings.options import options

if TYPE_CHECKING:
    from torchlens.runner.figures import Figure
    from torchlens.runner.job import Job

_BLOCK = re.compile(r"<!-- (setup|figure|source|options): ([\w.]+) -->\n.*?<!-- end -->", re.DOTALL)
_SIZE = re.compile(rb'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
# Pixels of a figure on the page at most; a click shows all of it.
_WIDTH, _HEIGHT = 760.0, 1000.0


def read_set(name: str, words: Sequence[str] = ()) -> Job:
    """The job that draws a set for the documentation. words: further words of its command line."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig

    from torchlens.runner import groups, schema
    from torchlens.runner.job import read_job
    from torchlens.settings import catalog

    groups.install(())
    schema.register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(catalog.packaged()), job_name="torchlens", version_base="1.3"):
        cfg = compose("config", overrides=[f"figures={name}", "output=docs", *words], return_hydra_config=True)
        HydraConfig.instance().set_config(cfg)
        return read_job(cfg, cfg.hydra)


def renewed(text: str, job: Job, page: Path) -> str:
    """The text of a page with all blocks made anew. page: where it is, for the paths of pictures."""
    figures = {figure.name: figure for figure in job.figures}
    shown = [figures[name] for kind, name in _BLOCK.findall(text) if kind == "figure"]
    before: dict[str, Figure | None] = dict(zip((f.name for f in shown), (None, *shown), strict=False))

    def block(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        if kind == "setup":
            body = _python(imports(shown))
        elif kind == "figure":
            body = _figure(figures[name], before[name], job, page)
        elif kind == "source":
            body = _python(_source(name))
        else:
            body = _table(shown)
        return f"<!-- {kind}: {name} -->\n{body}\n<!-- end -->"

    return _BLOCK.sub(block, text)


def undrawn(figures: Sequence[Figure]) -> list[str]:
    """The options that no figure of a set sets."""
    used = {name for figure in figures for name in figure.request.trail}
    return [name for name in options() if name not in used]


# -- blocks
def _figure(figure: Figure, before: Figure | None, job: Job, page: Path) -> str:
    svg = next(file for file in figure.files if file.endswith(".svg"))
    path = Path(job.out) / svg
    # A page and its pictures lie side by side, wherever the copy of the repository is.
    target = path.relative_to(page.parent).as_posix() if path.is_relative_to(page.parent) else path.as_posix()
    lines = [*recording(figure, before), call(figure)]
    words = command(job.config.get("figures", {}).get(figure.name, {}))
    return "\n\n".join(
        [
            f'<a href="{target}"><img src="{target}" alt="{_title(figure)}" {_shown_size(path)}></a>',
            _python("\n".join(lines)),
            f"```console\n{words}\n```",
        ]
    )


def _shown_size(path: Path) -> str:
    """Width of the picture on the page, so that it fits a screen."""
    found = _SIZE.search(path.read_bytes())
    assert found is not None, path
    width, height = float(found[1]) * 4 / 3, float(found[2]) * 4 / 3
    return f'width="{round(width * min(1.0, _WIDTH / width, _HEIGHT / height))}"'


def _title(figure: Figure) -> str:
    return f"{figure.model.name}: {figure.name.replace('_', ' ')}"


def _python(text: str) -> str:
    return f"```python\n{text}\n```"


def _source(name: str) -> str:
    from torchlens.runner.names import locate

    return inspect.cleandoc("\n" + inspect.getsource(locate(name)))


def _table(figures: Sequence[Figure]) -> str:
    table = options()
    rows = [
        f"| `{name}` | {_cell(table[name].doc)} | {_cell(' · '.join(table[name].allowed))} |"
        for name in undrawn(figures)
    ]
    return "\n".join(["| option | meaning | values |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(paths: Sequence[str]) -> int:
    """Renew pages in place."""
    for path in map(Path, paths):
        text = path.read_text(encoding="utf-8")
        found = re.search(r"<!-- setup: (\w+) -->", text)
        if found is None:
            print(f"{path}: no `<!-- setup: NAME -->` says which set of figures it shows", file=sys.stderr)
            return 2
        write_atomically(path, renewed(text, read_set(found[1]), path).encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
