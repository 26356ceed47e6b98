"""Names of the folders of a sweep: readable, safe on every system, short, and different for different jobs."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Sequence

from torchlens.base.errors import fail

# Choices that are named even where all jobs share them, so that other sweeps into the same folder have other names.
_NAMED = ("model", "input", "view", "theme", "collapse", "encoding", "figures")
_LENGTH, _HASH = 80, 8


def job_names(jobs: Sequence[Sequence[str]], swept: Collection[str]) -> list[str]:
    """A folder name for each job from its overrides, such as `model-rnn_theme-dark`.

    swept: the keys that have several values. A name ends in a hash where characters were replaced, it was cut, or
    another job would have the same one. The same job has the same name in a longer sweep over the same keys.
    Raises: ConfigError[sweep_jobs_equal].
    """
    texts = ["_".join(_words(text) for text in job if _named(text, swept)) for job in jobs]
    for text, count in Counter(map(tuple, jobs)).items():
        if count > 1:
            fail("sweep_jobs_equal", f"{' '.join(text)} is listed {count} times")
    names = [_clean(text) for text in texts]
    taken = Counter(name.casefold() for name in names)  # some systems do not tell a from A
    return [
        name if taken[name.casefold()] == 1 else _hashed(name, " ".join(job))
        for name, job in zip(names, jobs, strict=True)
    ]


def value_of(override: str) -> str:
    """The value that an override sets, without the quotes around it."""
    value = override.partition("=")[2]
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _words(override: str) -> str:
    return f"{key_of(override)}-{value_of(override)}" if "=" in override else key_of(override)


def key_of(override: str) -> str:
    """The key that an override sets."""
    return override.partition("=")[0].lstrip("+~")


def _named(override: str, swept: Collection[str]) -> bool:
    key = key_of(override)
    return key in swept or key in _NAMED


def _clean(text: str) -> str:
    """Letters, digits, `-`, `_`, `.` and `+` only, not hidden, of bounded length."""
    clean = re.sub(r"[^A-Za-z0-9._+-]+", "-", text)[:_LENGTH].strip("-.")
    if clean == text:
        return clean or "job"
    return _hashed(clean, text)


def _hashed(name: str, text: str) -> str:
    return f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:_HASH]}"
