"""Profiles of hypothesis, long with N5ZARR_HYPOTHESIS=nightly; a mark of xarray's tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", max_examples=50, deadline=None, derandomize=True, database=None
)
settings.register_profile(
    "nightly",
    max_examples=2000,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("N5ZARR_HYPOTHESIS", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Do what xarray's conftest does: skip a test for some of its parameters."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        for mark in item.iter_markers("skip_if_param"):
            wanted = {k: v for k, v in mark.kwargs.items() if k not in ("reason", "condition")}
            fits = all(parameters.get(name) == value for name, value in wanted.items())
            if mark.kwargs.get("condition", True) and fits:
                item.add_marker(pytest.mark.skip(reason=mark.kwargs["reason"]))
