"""Describe what a check has found, and the arrays that it has checked, for its report."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from n5zarr.container.walk import PathPatterns
from n5zarr.errors import N5Error
from n5zarr.tools.convert.places import open_source
from n5zarr.tools.evidence.report import entry_of_run
from n5zarr.tools.evidence.sides import add_arrays

if TYPE_CHECKING:
    from n5zarr.storage.place import Place
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.validate.findings import Validation


def describe_check(done: Validation, place: Place, run: RunOptions) -> None:
    """Add findings and arrays to the report, if there is one, and hashes if blocks were decoded."""
    entry = entry_of_run()
    if entry is None:
        return
    result = done.to_json()
    entry["findings"], entry["status"] = result["findings"], "ok" if done.ok else "problems"
    entry["result"] = {name: result[name] for name in ("n_groups", "n_datasets", "by_severity")}
    if run.division.part is not None:
        return
    with suppress(N5Error):  # which is a finding
        tree = open_source(place, 3, PathPatterns())
        entry["skipped"] = [{"path": p, "reason": str(err)} for p, err in tree.refused.items()]
        arrays = {path: {"location": array} for path, array in tree.arrays.items()}
        add_arrays(arrays, run, hashed=["location"] if done.deep else (), keeps_going=True)
