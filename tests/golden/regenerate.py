"""Rewrite the golden files, or those of the figures named: `python -m tests.golden.regenerate [figure ...]`."""

from __future__ import annotations

import sys

from tests.golden.figures import FIGURES, FOLDER, draw


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        print(f"no figure is named {', '.join(unknown)}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    if not names:
        for path in FOLDER.iterdir():
            path.unlink()
    for name in names or FIGURES:
        for suffix, text in zip(("dot", "json"), draw(name), strict=True):
            path = FOLDER / f"{name}.{suffix}"
            path.write_text(text, encoding="utf-8", newline="\n")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
