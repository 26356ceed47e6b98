"""How much work the collapse planner may do: the numbers of `conf/collapse/limits.yaml`.

A file of that name in a folder of TORCHLENS_CONF takes the place of the packaged one. Knows nothing of plans.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from torchlens.settings import catalog
from torchlens.settings.layers import check_keys, refuse

NAME = "limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of planning.

    max_units: units up to which the quality planner is tried; pathological_factor: times max_units, ops beyond which
    no planner is; budget_s: seconds it may be predicted to take; coefficient_ms, units_exponent, width_exponent: the
    prediction, milliseconds = coefficient * units ** a * widest ** b; watchdog_s, watchdog_factor: it is abandoned
    after the larger of so many seconds and so many times the prediction.
    """

    max_units: int
    pathological_factor: float
    budget_s: float
    coefficient_ms: float
    units_exponent: float
    width_exponent: float
    watchdog_s: float
    watchdog_factor: float


def load_limits() -> Limits:
    """Read the limits. Raises: ConfigError[config_invalid] naming file and key."""
    entry = catalog.read("collapse", NAME, catalog.data_file("collapse", NAME))
    names = [item.name for item in fields(Limits)]
    where = str(entry.path)
    values = check_keys(where, "", entry.data, names)
    for name in names:
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            refuse(where, name, f"is not a number of at least 0 but {value!r}")
    return Limits(**values)
