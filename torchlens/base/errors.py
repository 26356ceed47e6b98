"""The error family and the one funnel through which errors and warnings leave the package.

Text shape: `[code] what. Allowed: ... Fix: ...`. Every instance has `code`, `remedy` and `fields`; each subclass is
also the builtin that a caller would expect to catch.
"""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NoReturn

from torchlens.base.codes import CODES

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


class TorchLensError(Exception):
    """Base of all errors of the package.

    code: permanent identifier; remedy: what usually helps; fields: the facts behind the text.
    """

    def __init__(self, code: str, what: str, *, fix: str = "", allowed: Iterable[str] = (), **fields: object) -> None:
        self.code = code
        self.remedy = fix or CODES[code].remedy
        self.allowed = tuple(allowed)
        self.fields = fields
        super().__init__(_text(code, what, self.allowed, self.remedy))

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, which would quote the whole sentence.
        return str(self.args[0])


class InvalidArgumentError(TorchLensError, ValueError):
    """An option or argument has a value that is not allowed."""


class UnknownNameError(TorchLensError, KeyError):
    """A name that nothing bears."""


class InputError(TorchLensError, ValueError):
    """The model or its input cannot be used as given."""


class CaptureError(TorchLensError, RuntimeError):
    """The recording itself could not be made or is inconsistent."""


class EvidenceError(InvalidArgumentError):
    """A view asks for facts that the trace does not hold."""


class UnavailableError(TorchLensError, RuntimeError):
    """A value or feature that this object does not have."""


class ConfigError(TorchLensError, ValueError):
    """A configuration file, key or override is wrong."""


class EngineError(TorchLensError, RuntimeError):
    """A layout engine is missing or failed."""


class LoadError(TorchLensError, OSError):
    """A file that holds no trace, or none that this version can read."""


class TorchLensWarning(UserWarning):
    """A disclosed degradation; the text starts with its code, so the standard filter can name it."""

    def __init__(self, code: str, what: str, *, fix: str = "", **fields: object) -> None:
        self.code = code
        self.remedy = fix or CODES[code].remedy
        self.fields = fields
        super().__init__(_text(code, what, (), self.remedy))


_CLASSES: dict[str, type[TorchLensError]] = {
    cls.__name__: cls
    for cls in (
        InvalidArgumentError,
        UnknownNameError,
        InputError,
        CaptureError,
        EvidenceError,
        UnavailableError,
        ConfigError,
        EngineError,
        LoadError,
    )
}


def error(code: str, what: str, *, fix: str = "", allowed: Iterable[str] = (), **fields: object) -> TorchLensError:
    """Build the error of a code, in the class its row names."""
    return _CLASSES[CODES[code].kind](code, what, fix=fix, allowed=allowed, **fields)


def fail(code: str, what: str, *, fix: str = "", allowed: Iterable[str] = (), **fields: object) -> NoReturn:
    """Raise the error of a code."""
    raise error(code, what, fix=fix, allowed=allowed, **fields)


def warn(code: str, what: str, *, fix: str = "", **fields: object) -> TorchLensWarning:
    """Emit the warning of a code and return it; a `heard` around the call lists it too, whatever the filters say."""
    warning = TorchLensWarning(code, what, fix=fix, **fields)
    for listener in _listeners.get():
        listener.append(warning)
    warnings.warn(warning, stacklevel=_level_of_caller())
    return warning


def _level_of_caller() -> int:
    """Stack level, counted from `warn`, of the first frame outside the package: the user's line."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return max(level, 1)


_listeners: ContextVar[tuple[list[TorchLensWarning], ...]] = ContextVar("torchlens_warnings", default=())


@contextmanager
def heard() -> Generator[list[TorchLensWarning]]:
    """Collect the warnings that are emitted inside, in this thread or task, besides emitting them."""
    collected: list[TorchLensWarning] = []
    token = _listeners.set((*_listeners.get(), collected))
    try:
        yield collected
    finally:
        _listeners.reset(token)


def causes(exc: BaseException) -> list[BaseException]:
    """An exception and what led to it, from the outermost on."""
    chain: list[BaseException] = []
    current: BaseException | None = exc
    while current is not None and not any(current is earlier for earlier in chain):
        chain.append(current)
        current = current.__cause__ or current.__context__
    return chain


def first_line(exc: BaseException) -> str:
    """The first line of an exception's text that says something."""
    return next((line.strip() for line in str(exc).splitlines() if line.strip()), "no message")


def unknown(code: str, what: str, name: str, names: Iterable[str], *, otherwise: str) -> TorchLensError:
    """The error of a name that nothing bears, with the nearest names; otherwise: what helps if none is near."""
    close = list(dict.fromkeys(nearest(name, dict.fromkeys(names))))
    fix = f"perhaps you meant {', '.join(map(repr, close))}" if close else otherwise
    return error(code, what, fix=fix, name=name)


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names most like the given one, best first."""
    return difflib.get_close_matches(str(name), list(names), n=count, cutoff=0.6)


def _text(code: str, what: str, allowed: tuple[str, ...], remedy: str) -> str:
    choices = f" Allowed: {', '.join(allowed)}." if allowed else ""
    return f"[{code}] {what.rstrip('.')}.{choices} Fix: {remedy.rstrip('.')}."
