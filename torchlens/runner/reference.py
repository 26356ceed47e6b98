"""Writes docs/glossary.md and docs/codes.md from the tables of options and codes.

Called by `make docs` as `python -m torchlens.runner.reference docs`. What the pages say is said in those tables and
in the files of `conf/`; nothing is written twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torchlens.base.codes import CODES, Code
from torchlens.base.files import write_atomically
from torchlens.runner.input_spec import DTYPES, INPUT_KEYS, KINDS
from torchlens.runner.spec import MODEL_KEYS, MODES, TRUSTED
from torchlens.settings import catalog, theme, view
from torchlens.settings.evidence import NEEDS, WISHES
from torchlens.settings.options import Option, options
from torchlens.settings.resolvers import RESOLVERS

GLOSSARY, CODE_LIST = "glossary.md", "codes.md"
_NOTE = "<!-- Made by `make docs` from the tables of the package; change those. -->"
# Groups whose options are said to be any number besides.
_LEVELS = "collapse"


def glossary() -> str:
    """Every option of a drawing, every choice of a group, and the keys of the files."""
    return "\n".join([*_glossary()]) + "\n"


def _glossary() -> Iterator[str]:
    yield from (
        "# Options and choices",
        "",
        _NOTE,
        "",
        "An option is a keyword in Python, `trace.draw(depth=2)`, and `draw.depth=2` on the command line. `null` there",
        "is `None` in Python: it switches off what a view, a theme or a figure set.",
        "",
        "## Options of a drawing",
        "",
        "| option | default | values | meaning |",
        "|---|---|---|---|",
    )
    yield from (_option_row(option) for option in options().values())
    for group in catalog.GROUPS:
        more = " or a number from 0 (draw everything) to 1 (as `max`)" if group == _LEVELS else ""
        yield from ("", f"## `{group}=`", "", f"One of these{more}.", "", "| name | what it is |", "|---|---|")
        yield from (_choice_row(group, name) for name in catalog.names(group))
    yield from (
        "",
        "## Keys of the files",
        "",
        "| file | keys |",
        "|---|---|",
        f"| `models/NAME.yaml` | {_words(MODEL_KEYS)} |",
        f"| `input:` of a model, and `inputs/NAME.yaml` | {_words(INPUT_KEYS)} |",
        f"| `views/NAME.yaml` | {_words(view.KEYS)} |",
        f"| `themes/NAME.yaml` | {_words(theme.KEYS)} |",
        f"| `roles:` of a theme | {_words(theme.ROLES)} |",
        f"| `edges:` of a theme | {_words(theme.EDGES)} |",
        "",
        f"`kind` of an input: {_words(KINDS)}.",
        f"`dtype`: {_words(DTYPES)}.",
        f"`mode` of a model: {_words(MODES)}.",
        f"`needs` of a view: {_words(NEEDS)}. `caption`: {_words(view.CAPTION_LINES)}. `fallback`: {_words(WISHES)}.",
        f"`resolve` in a view: {'; '.join(f'`{name}` for {_words(row.options)}' for name, row in RESOLVERS.items())}.",
        f"Trusted to build models without `trust=`: {_words(TRUSTED)}.",
    )


def _option_row(option: Option) -> str:
    values = ", ".join(
        f"`{word}`" if word in (*option.choices, "true", "false", "null") else word for word in option.allowed
    )
    default = option.default
    shown = "null" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return _row(f"`{option.name}`", f"`{shown}`", values, option.doc)


def _choice_row(group: str, name: str) -> str:
    line = catalog.question(catalog.find(group, name)[0]).removeprefix(f"{name}: ")
    return _row(f"`{name}`", line)


def codes() -> str:
    """Every error and warning with what it means and what helps."""
    return "\n".join([*_codes()]) + "\n"


def _codes() -> Iterator[str]:
    rows = sorted(CODES.values(), key=lambda row: row.name)
    yield from (
        "# Errors and warnings",
        "",
        _NOTE,
        "",
        "Every error of the package is a `TorchLensError` and every warning a `TorchLensWarning`. Both have the",
        "attributes `code`, `remedy` and `fields`, and start with their code, so that a filter can name it:",
        r'`warnings.filterwarnings("ignore", message=r"\[figure_unreadable\]")`. A code stays once it is released.',
    )
    for title, some in (
        ("Errors", [row for row in rows if row.kind != "TorchLensWarning"]),
        ("Warnings", [row for row in rows if row.kind == "TorchLensWarning"]),
    ):
        kinds = title == "Errors"
        head = ("code", *(["class"] if kinds else []), "what it means", "what helps")
        yield from ("", f"## {title}", "", _row(*head), "|" + "---|" * len(head))
        yield from (_code_row(row, kinds) for row in some)


def _code_row(row: Code, kinds: bool) -> str:
    return _row(f"`{row.name}`", *([f"`{row.kind}`"] if kinds else []), row.summary, row.remedy)


def _row(*cells: str) -> str:
    """A row of a table; a bar in a cell would end it, and an angle bracket would be a tag."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main(argv: Sequence[str] | None = None) -> int:
    """Write both pages into a folder, `docs` unless one is named."""
    (folder,) = (sys.argv[1:] if argv is None else argv) or ["docs"]
    for name, text in ((GLOSSARY, glossary()), (CODE_LIST, codes())):
        write_atomically(Path(folder) / name, text.encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
