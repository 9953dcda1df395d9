"""Describe what a comparison has found, and the arrays that it has compared, for its report."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from n5zarr.tools.evidence.sides import Side, described, hash_each
from n5zarr.tools.jobs.run import MAX_MEMORY

if TYPE_CHECKING:
    from n5zarr.tools.diff.model import Comparison, Found
    from n5zarr.tools.jobs.run import RunOptions

__all__ = ["add_comparison"]


def add_comparison(entry: dict[str, Any], found: Found, done: Comparison, run: RunOptions) -> None:
    """Add the result of a comparison to a report, with the compared arrays and their hashes.

    Parameters
    ----------
    entry : dict
        What the report says of the run.
    found, done : Found, Comparison
        The arrays, and the result.
    run : RunOptions
        Where the tasks run.
    """
    members = asdict(done)
    entry["differences"], problems = members.pop("differences"), members.pop("problems")
    entry["skipped"] = [{"path": getattr(e, "where", None), "reason": str(e)} for e in problems]
    entry["result"] = members
    entry["status"] = "running" if done.is_equal else "problems"
    datasets = []
    for path, first, second in found.pairs:
        sides = {"first": Side.of_array(first), "second": Side.of_array(second)}
        datasets.append((described(path, first.shape, sides), sides))
    entry["datasets"] = [dataset for dataset, _ in datasets]
    hash_each(datasets, run, MAX_MEMORY)
