"""Describe what a check has found, and the arrays that it has checked, for its report."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from n5zarr.container.walk import PathPatterns
from n5zarr.errors import N5Error
from n5zarr.tools.convert.places import open_source
from n5zarr.tools.evidence.sides import Side, described, hash_each
from n5zarr.tools.jobs.run import MAX_MEMORY

if TYPE_CHECKING:
    from n5zarr.storage.place import Place
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.validate.findings import Validation

__all__ = ["add_check"]


def add_check(entry: dict[str, Any], done: Validation, place: Place, run: RunOptions) -> None:
    """Add the result of a check to a report, each array, and hashes if all blocks were decoded.

    Parameters
    ----------
    entry : dict
        What the report says of the run.
    done : Validation
        The result.
    place : Place
        What was checked.
    run : RunOptions
        Where the tasks run.
    """
    result = done.to_json()
    entry["findings"] = result.pop("findings")
    entry["result"] = {name: result[name] for name in ("n_groups", "n_datasets", "by_severity")}
    entry["status"] = "running" if done.ok else "problems"
    if run.division.part is not None:
        return
    datasets = []
    with suppress(N5Error):  # which is a finding
        tree = open_source(place, 3, PathPatterns())
        for path, source in tree.arrays.items():
            sides = {"location": Side.of(source)}
            datasets.append((described(path, source.shape, sides), sides))
        entry["skipped"] = [{"path": p, "reason": str(err)} for p, err in tree.refused.items()]
    entry["datasets"] = [dataset for dataset, _ in datasets]
    if done.deep:
        hash_each(datasets, run, MAX_MEMORY, keep_going=True)
