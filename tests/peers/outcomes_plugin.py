"""Write the result of each test of another project into ``N5ZARR_OUTCOMES``, as a plugin."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

REPORT = Path(os.environ.get("N5ZARR_OUTCOMES", os.devnull))
N_CHARACTERS = 600  # of a message

_outcomes: dict[str, list[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome of a test, and the message of a failure or a skip."""
    outcome: str = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "xfailed" if outcome == "skipped" else "xpassed"
    known = _outcomes.get(report.nodeid, ["passed"])[0]
    if report.nodeid not in _outcomes or known == "passed" != outcome:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr or "")
        _outcomes[report.nodeid] = [outcome, text[:N_CHARACTERS]]


def pytest_sessionfinish() -> None:
    """Write the outcomes of all tests; with pytest-xdist, only its controller knows them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        REPORT.write_text(json.dumps(_outcomes, indent=0, sort_keys=True), encoding="utf-8")
