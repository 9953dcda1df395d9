"""What a comparison of arrays, groups or images finds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from n5zarr.format.lenient_json import JSON
from n5zarr.images.source import ArraySource
from n5zarr.store.info import counted
from n5zarr.tools.diff.arrays import ArrayDifference, Readable, compare_each
from n5zarr.tools.jobs.nodes import name_of_type
from n5zarr.tools.jobs.reports import RunReport, report_of_run
from n5zarr.tools.jobs.run import RunOptions

type What = Literal["missing", "kind", "shape", "data-type", "axes", "attribute", "values"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between two nodes, images or levels.

    Parameters
    ----------
    path : str
        Path of the node below the compared nodes; ``""`` for the nodes themselves. Images and
        levels have those of the first side, levels with their names in N5; views of projects are
        ``"setup0/timepoint0/s0"``.
    what : str
        ``"missing"``: the node exists on one side only. ``"kind"``: one is a group, the other an
        array. For arrays also ``"shape"``, ``"data-type"``, ``"axes"``, ``"values"``; for images
        ``"axes"``; for groups and arrays ``"attribute"``.
    key : str
        Java's path of the attribute, or the property of the axes that differs; otherwise empty.
    first, second : JSON
        The values on both sides; None if there is none. Shapes are in C order.
    values : ArrayDifference or None
        How the values differ.
    """

    path: str
    what: What
    key: str = ""
    first: JSON = None
    second: JSON = None
    values: ArrayDifference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of :func:`compare`.

    Parameters
    ----------
    n_groups, n_arrays : int
        Numbers of groups and arrays that exist on both sides.
    n_elements : int
        Number of elements whose values were compared.
    differences : tuple of Difference
        The differences; differences of values come last.
    problems : tuple of Exception
        Errors of nodes that could not be read, and so were not compared.
    n_images : int
        Number of images that exist on both sides, if images were compared instead of nodes.
    """

    n_groups: int
    n_arrays: int
    n_elements: int
    differences: tuple[Difference, ...]
    problems: tuple[Exception, ...]
    n_images: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether all nodes could be compared, and nothing differs."""
        return not self.differences and not self.problems

    def __str__(self) -> str:
        n, n_images = len(self.differences), self.n_images
        above = counted(n_images, "image") if n_images else counted(self.n_groups, "group")
        nodes = f"{above} and {counted(self.n_arrays, 'array')} compared"
        elements = f", {self.n_elements} elements" if self.n_elements else ", no values"
        return f"{counted(n, 'difference') if n else 'equal'}: {nodes}{elements}"

    def __repr__(self) -> str:
        problems = f"; {counted(len(self.problems), 'node')} not read" if self.problems else ""
        return f"<Comparison: {self}{problems}>"


@dataclass(slots=True)
class Found:
    """What two sides have in common, how documents differ, and arrays to compare by values."""

    n_groups: int = 0
    n_arrays: int = 0
    n_images: int = 0
    differences: list[Difference] = field(default_factory=list)
    pairs: list[tuple[str, Readable, Readable]] = field(default_factory=list)
    problems: list[Exception] = field(default_factory=list)

    def arrays(self, path: str, a: Readable, b: Readable) -> Iterator[Difference]:
        """Yield the differences of two arrays in data type and shape; keep those of one shape."""
        self.n_arrays += 1
        types = [name_of_type(np.dtype(x.dtype)) for x in (a, b)]
        if types[0] != types[1]:
            yield Difference(path=path, what="data-type", first=types[0], second=types[1])
        shapes = tuple(a.shape), tuple(b.shape)
        if shapes[0] == shapes[1]:
            self.pairs.append((path, a, b))
        else:
            yield Difference(path=path, what="shape", first=[*shapes[0]], second=[*shapes[1]])

    def compared(self, run: RunOptions, tolerance: float) -> Comparison:
        """Compare the values of the arrays, and add all to the report, if there is one."""
        found = compare_each([(a, b) for _, a, b in self.pairs], run, tolerance)
        of_values = [
            Difference(path=path, what="values", values=difference)
            for (path, _, _), difference in zip(self.pairs, found, strict=True)
            if difference is not None
        ]
        done = Comparison(
            n_groups=self.n_groups,
            n_arrays=self.n_arrays,
            n_images=self.n_images,
            n_elements=sum(math.prod(a.shape) for _, a, _ in self.pairs),
            differences=(*self.differences, *of_values),
            problems=tuple(self.problems),
        )
        if (report := report_of_run()) is not None:
            self._describe(report, done, run)
        return done

    def _describe(self, report: RunReport, done: Comparison, run: RunOptions) -> None:
        entry, result = report.entry, asdict(done)
        entry["differences"], problems = result.pop("differences"), result.pop("problems")
        entry["skipped"] = [{"path": getattr(e, "where", None), "reason": str(e)} for e in problems]
        entry["result"], entry["status"] = result, "ok" if done.is_equal else "problems"
        arrays = {p: {"first": _source(a), "second": _source(b)} for p, a, b in self.pairs}
        report.add_arrays(arrays, run, hashed=("first", "second"))


def _source(array: Any) -> ArraySource:  # noqa: ANN401 - of zarr, or of a level
    parts = getattr(array, "parts", ())
    return ArraySource("", array, np.dtype(array.dtype), tuple(array.chunks), parts=parts)
