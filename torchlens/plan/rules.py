"""What `collapse_rules=` says of a trace: modules that are one box, modules that stay open, ops that leave the page.

keep beats fold and hide, wherever it stands; of fold and hide, the later rule that matches beats the earlier one. A
rule about ops beats a rule about the modules around them, and among these the innermost one that any rule is about
decides. The model itself, or the module in focus, is the page and no rule is about it. Linear in the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from torchlens.base.errors import nearest, warn
from torchlens.base.text import listing
from torchlens.ops.families import base_name, family_of
from torchlens.plan.select import Selection
from torchlens.records.trace_data import TraceData
from torchlens.settings.rules import ADDRESS, CLASS, FOLD, HIDE, KEEP, OP, Rule

# What an op of this family is called besides its function when it does nothing, as in evaluation mode.
DROPOUT, IDLE = "dropout", "inactive dropout"
# Characters of a list of labels in a warning.
LIST_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the rules come to.

    folds: modules that are one box each; stays: modules that are never one, since they or something in them are kept;
    kept: ops that nothing but `depth=` may swallow; hides: ops that leave the page where no box holds them; unused:
    rules that match nothing; spared: ops that a rule would hide and that decide a branch, by rule.
    """

    folds: frozenset[int] = frozenset()
    stays: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    hides: frozenset[int] = frozenset()
    unused: tuple[Rule, ...] = ()
    spared: Mapping[Rule, tuple[int, ...]] = field(default_factory=dict[Rule, tuple[int, ...]])


NO_RULES = Verdicts()


def judge(data: TraceData, rules: Sequence[Rule], levels: Sequence[int], selection: Selection) -> Verdicts:
    """Apply the rules. levels: per call, its depth below what the page shows, less than 1 for that and outside it."""
    if not rules:
        return NO_RULES
    return _Judge(data, rules, levels, selection).verdicts()


class _Judge:
    def __init__(self, data: TraceData, rules: Sequence[Rule], levels: Sequence[int], selection: Selection) -> None:
        self._data, self._levels, self._selection = data, levels, selection
        self._rules = rules
        self._used: set[Rule] = set()
        self._by_name: dict[tuple[str, str, bool], Rule | None] = {}
        called = [module.index for module in data.modules[1:] if module.calls]
        self._of_module = {
            m: self._decide(rule for rule in rules if _is_about(rule, module_names(data, m, rule.by))) for m in called
        }

    def verdicts(self) -> Verdicts:
        data = self._data
        state = self._states()
        kept, hides, spared = set[int](), set[int](), dict[Rule, list[int]]()
        tested, stays = set(data.branches.nodes), self._kept_modules()
        for i in data.op_indexes:
            ruled = self._rule_of_op(i)
            call = data.nodes.call[i]
            if ruled is not None and ruled.do == KEEP:
                kept.add(i)
                stays |= self._around(call)
                continue
            rule = ruled or state[call]
            if rule is None or self._levels[call] < 0 or not self._selection.drawn(i) or self._selection.hidden[i]:
                continue
            if rule.do == KEEP:
                kept.add(i)
            elif rule.do == HIDE and i in tested:
                spared.setdefault(rule, []).append(i)
            elif rule.do == HIDE:
                hides.add(i)
        folds = {m for m, rule in self._of_module.items() if rule is not None and rule.do == FOLD}
        return Verdicts(
            frozenset(folds - stays),
            frozenset(stays),
            frozenset(kept),
            frozenset(hides),
            tuple(rule for rule in self._rules if rule not in self._used),
            {rule: tuple(ops) for rule, ops in spared.items()},
        )

    def _decide(self, matching: Iterable[Rule]) -> Rule | None:
        """The rule that decides among those that match the same thing, in their order."""
        found: Rule | None = None
        for rule in matching:
            self._used.add(rule)
            if found is None or found.do != KEEP:
                found = rule
        return found

    def _states(self) -> list[Rule | None]:
        """Per call, the rule of the innermost module around it that has one."""
        state: list[Rule | None] = []
        for c, call in enumerate(self._data.calls):
            above = None if call.parent is None else state[call.parent]
            state.append((self._of_module.get(call.module) or above) if self._levels[c] > 0 else None)
        return state

    def _kept_modules(self) -> set[int]:
        stays: set[int] = set()
        for module, rule in self._of_module.items():
            if rule is not None and rule.do == KEEP:
                for call in self._data.modules[module].calls:
                    stays |= self._around(call)
        return stays

    def _around(self, call: int) -> set[int]:
        """The modules of a call and of those around it, as far as the page shows them."""
        return {self._data.calls[c].module for c in self._data.call_chain(call) if self._levels[c] > 0}

    def _rule_of_op(self, op: int) -> Rule | None:
        nodes = self._data.nodes
        key = nodes.func[op], self._data.layers[nodes.layer[op]].type, _is_idle(self._data, op)
        if key not in self._by_name:
            names = _op_names(*key)
            self._by_name[key] = self._decide(rule for rule in self._rules if rule.by == OP and _is_about(rule, names))
        return self._by_name[key]


# -- names
def module_names(data: TraceData, module: int, by: str) -> tuple[str, ...]:
    """What a rule by class or by address may call a module; nothing for a rule about ops."""
    record = data.modules[module]
    if by == CLASS:
        return record.class_name, record.qualified_name
    return (record.address, *record.aliases) if by == ADDRESS else ()


def _op_names(func: str, word: str, idle: bool) -> tuple[str, ...]:
    """The function, the word on the label, the family."""
    family = family_of(func)
    return (func, base_name(func), word, *([family.name] if family else []), *([IDLE] if idle else []))


def _is_idle(data: TraceData, op: int) -> bool:
    """Whether an op is a dropout that drops nothing."""
    family = family_of(data.nodes.func[op])
    return family is not None and family.name == DROPOUT and ("training", False) in data.nodes.config[op]


def _is_about(rule: Rule, names: Iterable[str]) -> bool:
    pattern = rule.pattern.removeprefix("@") if rule.by == ADDRESS else rule.pattern
    return any(fnmatchcase(name, pattern) for name in names)


# -- disclosure
def warn_of(data: TraceData, verdicts: Verdicts, *, of_unused: bool) -> None:
    """Warn of rules that match nothing, and of branch tests that stay.

    of_unused: whether the rules were written for this drawing, and not as a preset that serves any.
    """
    for rule in verdicts.unused if of_unused else ():
        known = _known_names(data, rule.by)
        close = list(dict.fromkeys(nearest(rule.pattern.strip("*?@"), known)))
        things = {CLASS: "classes", ADDRESS: "addresses", OP: "ops"}[rule.by]
        near = f"perhaps you meant {', '.join(map(repr, close))}" if close else ""
        fix = near or f"the {things} of the trace: {listing(known, LIST_WIDTH)}"
        warn(
            "collapse_rule_unused", f"{rule} matches nothing", fix=fix, rule=rule.index, key=rule.by, near=tuple(close)
        )
    for rule, ops in verdicts.spared.items():
        labels = [data.nodes.label[i] for i in ops]
        stay = "decides a branch and stays" if len(ops) == 1 else "decide branches and stay"
        what = f"{rule}: {listing(labels, LIST_WIDTH)} {stay} on the page"
        warn("collapse_rule_test_kept", what, rule=rule.index, labels=tuple(labels))


def _known_names(data: TraceData, by: str) -> list[str]:
    """What could have been written, in the order of the trace."""
    if by == OP:
        families = (family_of(data.nodes.func[i]) for i in data.op_indexes)
        words = [base_name(data.nodes.func[i]) for i in data.op_indexes] + [f.name for f in families if f]
        return list(dict.fromkeys(words))
    called = [module.index for module in data.modules[1:] if module.calls]
    return list(dict.fromkeys(name for m in called for name in module_names(data, m, by) if name))
