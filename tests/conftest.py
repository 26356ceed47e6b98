"""What every test starts from: one torch thread, no network, no configuration of the person who runs it."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported anywhere: the tests run in several processes on few cores.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ.pop("TORCHLENS_CONF", None)

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The slow ones first, so that no worker is left alone with one at the end.
    items.sort(key=lambda item: "models" not in item.keywords)
