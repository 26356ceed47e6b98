"""Keeps pages of the documentation in step with their sets of figures: `python -m torchlens.runner.pages docs/*.md`.

A page that has a block `setup` shows the set of figures that it names; any other page is left alone. Such a page is
written by hand, except for what stands between `<!-- kind: name -->` and `<!-- end -->`:

    setup: SET         the imports that the page's Python needs
    figure: NAME       a figure of the set, the Python that draws it and the command that does
    figures: A B C     several of them side by side, each with what tells it apart, then their Python and commands
    source: NAME       the code of an example, by its dotted name
    options: SET       a table of the options that none of the set's figures uses, with a page that shows each

The Python is worked out from the same entry that the runner draws. The lines that record are written where the
recording is another one than that of the figure above, so the page's Python runs from top to bottom.
`--sets` prints the sets of the pages instead.
"""

from __future__ import annotations

import html
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchlens.base.errors import fail
from torchlens.base.files import write_atomically
from torchlens.runner.commands import command
from torchlens.runner.python_calls import call, imports, keywords, recording
from torchlens.settings.options import options

if TYPE_CHECKING:
    from torchlens.runner.figures import Figure
    from torchlens.runner.job import Job

_BLOCK = re.compile(r"<!-- (setup|figures?|source|options): ([\w. ]+) -->\n.*?<!-- end -->", re.DOTALL)
_SETUP = re.compile(r"<!-- setup: (\w+) -->")
_SIZE = re.compile(rb'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
# Pixels of a figure on the page at most; a click shows all of it.
_WIDTH, _HEIGHT = 760.0, 1000.0
# Figures side by side, and the room between them.
_COLUMNS, _GAP = 3, 20.0


def figure_set(text: str) -> str | None:
    """The set of figures that a page shows; None if it shows none."""
    found = _SETUP.search(text)
    return found[1] if found else None


def shown(text: str) -> list[tuple[str, ...]]:
    """The names of the figures that a page shows, one entry per block, from top to bottom."""
    return [tuple(names.split()) for kind, names in _BLOCK.findall(text) if kind in ("figure", "figures")]


def read_set(name: str, words: Sequence[str] = ()) -> Job:
    """The job that draws a set for the documentation. words: further words of its command line."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from torchlens.runner import groups, levels, schema
    from torchlens.runner.job import read_job
    from torchlens.settings import catalog

    groups.install(())
    schema.register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(catalog.packaged()), job_name="torchlens", version_base="1.3"):
        given = levels.with_named_levels(OverridesParser.create().parse_overrides(list(words)), list(words))
        cfg = compose("config", overrides=[f"figures={name}", "output=docs", *given], return_hydra_config=True)
        HydraConfig.instance().set_config(cfg)
        return read_job(cfg, cfg.hydra)


def renewed(text: str, job: Job, page: Path) -> str:
    """The text of a page with all blocks made anew. page: where it is, for the paths of pictures and other pages.

    Raises: ConfigError[config_invalid] if the page shows a figure that the set has not.
    """
    figures = {figure.name: figure for figure in job.figures}
    names = [name for block in shown(text) for name in block]
    for name in names:
        if name not in figures:
            fail("config_invalid", f"{page} shows {name!r}, which is no figure of the set {job.figure_set!r}")
    drawn = [figures[name] for name in names]
    before = _recorded_before(drawn)

    def block(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        if kind == "setup":
            body = _python(imports(drawn))
        elif kind in ("figure", "figures"):
            body = _figures([figures[name] for name in name.split()], before, job, page)
        elif kind == "source":
            body = _python(_source(name))
        else:
            body = _table(drawn, page)
        return f"<!-- {kind}: {name} -->\n{body}\n<!-- end -->"

    return _BLOCK.sub(block, text)


def undrawn(figures: Sequence[Figure]) -> list[str]:
    """The options that no figure of a set sets."""
    used = {name for figure in figures for name in figure.request.trail}
    return [name for name in options() if name not in used]


def showing(figures: Sequence[Figure], name: str) -> bool:
    """Whether a figure has an option with another value than that of a figure without it."""
    used = [getattr(figure.request.options, name) for figure in figures if name in figure.request.trail]
    return any(value != options()[name].default for value in used)


def _recorded_before(figures: Sequence[Figure]) -> dict[str, Figure | None]:
    """Of each figure the last one above it that records something."""
    before: dict[str, Figure | None] = {}
    last: Figure | None = None
    for figure in figures:
        before[figure.name] = last
        last = figure if figure.model else last
    return before


# -- figures
def _figures(figures: Sequence[Figure], before: dict[str, Figure | None], job: Job, page: Path) -> str:
    code = [line for figure in figures for line in (*recording(figure, before[figure.name]), call(figure))]
    entries = job.config.get("figures", {})
    words = [command(entries.get(figure.name, {})) for figure in figures]
    pictures = _picture(figures[0], job, page, _WIDTH) if len(figures) == 1 else _side_by_side(figures, job, page)
    commands = "\n".join(words)
    return "\n\n".join([pictures, _python("\n".join(code)), f"```console\n{commands}\n```"])


def _side_by_side(figures: Sequence[Figure], job: Job, page: Path) -> str:
    """A table without empty places where that is possible."""
    columns = _columns([_size(_svg(figure, job)) for figure in figures])
    cells = [
        f'<td align="center">{_picture(figure, job, page, _WIDTH / columns - _GAP)}<br><code>{text}</code></td>'
        for figure, text in zip(figures, _told_apart(figures), strict=True)
    ]
    rows = ["\n".join(cells[k : k + columns]) for k in range(0, len(cells), columns)]
    return "\n".join(["<table>", *(f"<tr>\n{row}\n</tr>" for row in rows), "</table>"])


def _columns(sizes: Sequence[tuple[float, float]]) -> int:
    """How many pictures share a row: all if they stay tall, else three, or two if that leaves no empty place."""
    count = len(sizes)
    room = _WIDTH / count - _GAP
    if room > 0 and all(height * min(1.0, room / width) >= _HEIGHT / 2 for width, height in sizes):
        return count
    return 2 if count in (2, 4) else _COLUMNS


def _told_apart(figures: Sequence[Figure]) -> Iterator[str]:
    """What each figure of a block is drawn with, as markup."""
    several = len({figure.recording for figure in figures}) > 1
    for figure in figures:
        words = ", ".join(keywords(figure)) or ("" if several else "no options")
        yield html.escape(": ".join([*([_subject(figure)] if several else []), *([words] if words else [])]))


def _subject(figure: Figure) -> str:
    return figure.model.name if figure.model else f"theme {figure.request.theme.name}"


def _picture(figure: Figure, job: Job, page: Path, width: float) -> str:
    path = _svg(figure, job)
    # A page and its pictures lie side by side, wherever the copy of the repository is.
    target = path.relative_to(page.parent).as_posix() if path.is_relative_to(page.parent) else path.as_posix()
    title = f"{_subject(figure)}: {figure.name.replace('_', ' ')}"
    own, height = _size(path)
    # So that it fits a screen and its place.
    shown = round(own * min(1.0, width / own, _HEIGHT / height))
    return f'<a href="{target}"><img src="{target}" alt="{title}" width="{shown}"></a>'


def _svg(figure: Figure, job: Job) -> Path:
    return Path(job.out) / next(file for file in figure.files if file.endswith(".svg"))


def _size(path: Path) -> tuple[float, float]:
    """Width and height of a picture in pixels."""
    found = _SIZE.search(path.read_bytes())
    assert found is not None, path
    return float(found[1]) * 4 / 3, float(found[2]) * 4 / 3


# -- other blocks
def _python(text: str) -> str:
    return f"```python\n{text}\n```"


def _source(name: str) -> str:
    from torchlens.runner.names import locate

    return inspect.cleandoc("\n" + inspect.getsource(locate(name)))


def _table(figures: Sequence[Figure], page: Path) -> str:
    table, unused = options(), undrawn(figures)
    places = _elsewhere(page, unused)
    rows = [
        f"| `{name}` | {_cell(table[name].doc)} | {_cell(' · '.join(table[name].allowed))} | {places.get(name, '')} |"
        for name in unused
    ]
    return "\n".join(["| option | meaning | values | shown in |", "|---|---|---|---|", *rows])


def _elsewhere(page: Path, names: Sequence[str]) -> dict[str, str]:
    """Option -> link to the page beside this one that shows most values of it."""
    most: dict[str, tuple[int, str]] = {}
    for other in sorted(page.parent.glob("*.md")):
        text = other.read_text(encoding="utf-8")
        name = figure_set(text)
        if name is None or other.name == page.name:
            continue
        figures = read_set(name).figures
        link = f"[{text.splitlines()[0].lstrip('# ')}]({other.name})"
        for option in names:
            count = len({repr(getattr(f.request.options, option)) for f in figures if showing([f], option)})
            if count > most.get(option, (0, ""))[0]:
                most[option] = count, link
    return {option: link for option, (_, link) in most.items()}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str]) -> int:
    """Renew pages in place, or print their sets."""
    listing = "--sets" in arguments
    for path in (Path(word) for word in arguments if word != "--sets"):
        text = path.read_text(encoding="utf-8")
        name = figure_set(text)
        if name is None:
            continue
        if listing:
            print(name)
        else:
            write_atomically(path, renewed(text, read_set(name), path).encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
