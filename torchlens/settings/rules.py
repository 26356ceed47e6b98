"""The rules of `collapse_rules=`: what each of them may say, checked before any work.

A rule names modules by class or address, or ops by function or family, with a shell pattern, and says what becomes of
them. Knows nothing of traces and nothing of what a pattern matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from torchlens.base.errors import fail, nearest
from torchlens.settings.plain import is_list, is_mapping

CLASS, ADDRESS, OP = NAMED_BY = ("class", "address", "op")
DO = "do"
FOLD, KEEP, HIDE = ACTIONS = ("fold", "keep", "hide")
EXAMPLE = '[{"class": "Attention*", "do": "fold"}]'
WORDS = "a list of rules: class, address or op with a pattern, and do: fold, keep or hide"
ALLOWED = (WORDS, "null")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. index: its place in the list; by: one of `NAMED_BY`; do: one of `ACTIONS`."""

    index: int
    by: str
    pattern: str
    do: str

    def __str__(self) -> str:
        return f"collapse_rules[{self.index}] ({self.by}: {self.pattern}, do: {self.do})"


def check_rules(value: object, where: str = "") -> tuple[Mapping[str, str], ...]:
    """The rules as they are kept, each with its two keys. where: words for the error's start.

    Raises: InvalidArgumentError[collapse_rules_invalid] naming the rule and the key.
    """
    if not is_list(value):
        _refuse(f"{where}collapse_rules={value!r} is no list of rules", ALLOWED, f"write a list, such as {EXAMPLE}")
    return tuple(_check_rule(f"{where}collapse_rules[{index}]", rule) for index, rule in enumerate(value))


def read_rules(kept: Iterable[Mapping[str, str]] | None) -> tuple[Rule, ...]:
    """Checked rules, each with its place."""
    rules: list[Rule] = []
    for index, rule in enumerate(kept or ()):
        (by,) = (name for name in NAMED_BY if name in rule)
        rules.append(Rule(index, by, rule[by], rule[DO]))
    return tuple(rules)


def _check_rule(place: str, rule: object) -> Mapping[str, str]:
    if not is_mapping(rule):
        _refuse(f"{place} is no mapping but {rule!r}", ALLOWED, f"write a rule such as {EXAMPLE[1:-1]}")
    known = (*NAMED_BY, DO)
    for key in rule:
        if key not in known:
            close = nearest(str(key), known, 1)
            _refuse(f"{place}.{key} is no known key", known, f"perhaps you meant {close[0]!r}" if close else "")
    given = [name for name in NAMED_BY if name in rule]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        _refuse(f"{place} names what it is about by {found}", ["exactly one of class, address, op"])
    (by,) = given
    pattern = _pattern(f"{place}.{by}", rule[by])
    if rule.get(DO) not in ACTIONS:
        what = f"{place}.do={rule[DO]!r} is no action" if DO in rule else f"{place} has no key do"
        close = nearest(str(rule.get(DO)), ACTIONS, 1)
        _refuse(what, ACTIONS, f"perhaps you meant {close[0]!r}" if close and DO in rule else "")
    if by == OP and rule[DO] == FOLD:
        what = f"{place}.do=fold is not for an op: an op is one node already"
        _refuse(what, (KEEP, HIDE), "write do: hide to take it off the page, or fold its module by class or address")
    return {by: pattern, DO: str(rule[DO])}


def _pattern(place: str, value: object) -> str:
    """A pattern as text. The address of a member of a list, `0`, is a whole number in YAML."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        _refuse(f"{place}={value!r} is no pattern", ["text, in which * and ? stand for any"], "put it in quotes")
    return value.strip()


def _refuse(what: str, allowed: Iterable[str], fix: str = "") -> NoReturn:
    fail("collapse_rules_invalid", what, allowed=allowed, fix=fix)
