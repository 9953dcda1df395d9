"""Profiles of hypothesis: quick and repeatable by default, long with N5ZARR_HYPOTHESIS=nightly."""

from __future__ import annotations

import os

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
