"""Checks that rooms have of other locations than containers of N5: projects and OME-Zarr."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from n5zarr.rooms import Door
from n5zarr.storage.place import Place
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.validate.findings import Finding
from n5zarr.tools.validate.gaps import Gaps


class Check(Protocol):
    """A check of what is at a location, while it runs."""

    counts: Counter[str]
    gaps: Gaps
    deep: bool

    @property
    def name(self) -> str:
        """Name of the container or hierarchy."""

    @property
    def path(self) -> str:
        """The node at which it begins."""

    def run(
        self, run: RunOptions, state: str | os.PathLike[str] | None = None
    ) -> Iterator[Finding]:
        """Yield each finding as soon as possible."""


class FindCheck(Protocol):
    """Returns the check of a location; None of a location that is left to the next one."""

    def __call__(
        self, place: Place, path: str, *, deep: bool, expect_complete: bool
    ) -> Check | None:
        """Look at it."""


_CHECK_PROJECT: Door[FindCheck] = Door("step", "check of a project")
_CHECK_OME: Door[FindCheck] = Door("step", "check of OME-Zarr")


def check_of_room(place: Place, path: str, *, deep: bool, expect_complete: bool) -> Check | None:
    """Return the check of a location by a room; None of one that no room checks."""
    # the room of projects is imported only if there may be one
    for door in (*[_CHECK_PROJECT] * place.is_named("bdv"), _CHECK_OME):
        if (find := door.found()) is not None:
            check = find(place, path, deep=deep, expect_complete=expect_complete)
            if check is not None:
                return check
    return None
