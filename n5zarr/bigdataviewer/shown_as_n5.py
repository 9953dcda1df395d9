"""Present the images of a BigDataViewer project as N5: ``setupN/timepointM/sK``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, override

from n5zarr.bigdataviewer.levels import NO_LEVELS, StoredLevels, ViewLevels
from n5zarr.bigdataviewer.registrations import View
from n5zarr.conventions.bdv import write_setup, write_timepoint
from n5zarr.errors import N5Error
from n5zarr.format.lenient_json import JSON
from n5zarr.shown.made_datasets import MadeDataset, MadeDatasets

_NUMBER = "(0|[1-9][0-9]{0,9})"
_SETUP = re.compile(f"setup{_NUMBER}")
_VIEW = re.compile(f"{_SETUP.pattern}/timepoint{_NUMBER}")
_LEVEL = re.compile(f"{_VIEW.pattern}/s{_NUMBER}(?=/|$)")
_ROOT = b"{}"  # of no version of N5


class BdvImages(MadeDatasets):
    """The views of a project as a container of N5, read only.

    Its groups have the documents that BigDataViewer needs, so that copies have them, too.

    Parameters
    ----------
    source : ViewLevels
        The views.
    voxel_sizes : mapping of int to sequence of float, optional
        Voxel size of each setup in the XML, x, y, z.
    """

    refusal = (
        "expected only reading of a project whose images are not N5, or are split; n5zarr.convert "
        "copies it"
    )

    def __init__(
        self, source: ViewLevels, voxel_sizes: Mapping[int, Sequence[float] | None] | None = None
    ) -> None:
        super().__init__()
        self.source = source
        self.voxel_sizes = dict(voxel_sizes or {})
        self._levels: dict[View, StoredLevels] = {}
        self._timepoints: dict[int, dict[int, None]] = {}  # of each setup
        for setup, timepoint in source.views:
            self._timepoints.setdefault(setup, {})[timepoint] = None

    def __str__(self) -> str:
        return str(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BdvImages) and self.__reduce__() == other.__reduce__()

    __hash__ = None  # as zarr's own stores

    def __reduce__(self) -> tuple[Any, ...]:  # without memory
        return BdvImages, (self.source, self.voxel_sizes)

    @override
    def close(self) -> None:
        super().close()
        self.source.close()

    @override
    def confined(self) -> BdvImages:
        return BdvImages(self.source.confined(), self.voxel_sizes)

    async def _view(self, view: View) -> StoredLevels:
        """Return the levels of a view; none if its image does not exist."""
        setup, timepoint = view
        if view not in self._levels:
            exists = timepoint in self._timepoints.get(setup, {})
            self._levels[view] = await self.source.levels(view) if exists else NO_LEVELS
        return self._levels[view]

    @override
    async def _dataset(self, path: str) -> tuple[str, MadeDataset] | None:
        match = _LEVEL.match(path)
        if match is None:
            return None
        level = (await self._view((int(match[1]), int(match[2])))).stored.get(int(match[3]))
        return None if level is None else (match[0], level)

    @override
    async def _group(self, path: str) -> bytes | None:
        if not path:
            return _ROOT
        setup, view = _SETUP.fullmatch(path), _VIEW.fullmatch(path)
        document = None
        if setup is not None:
            document = await self._setup(int(setup[1]))
        elif view is not None:
            document = await self._timepoint((int(view[1]), int(view[2])))
        return None if document is None else json.dumps(document).encode()

    async def _setup(self, number: int) -> dict[str, JSON] | None:
        """Make the document of a setup, of its first view that exists, as Java takes it."""
        for timepoint in self._timepoints.get(number, ()):
            levels = await self._readable((number, timepoint))
            if levels.stored:
                finest = levels.stored[min(levels.stored)]
                return write_setup(levels.factors, finest.data_type.value)
        return None

    async def _timepoint(self, view: View) -> dict[str, JSON] | None:
        """Make the document of a time point of a setup."""
        levels = await self._readable(view)
        is_complete = len(levels.stored) == len(levels.factors)
        voxel_size = self.voxel_sizes.get(view[0])
        return write_timepoint(voxel_size, is_complete=is_complete) if levels.stored else None

    async def _readable(self, view: View) -> StoredLevels:
        """Return the levels of a view; none if it is broken, which is said where they are read.

        The error of one view would hide all others from whoever lists the groups.
        """
        try:
            return await self._view(view)
        except N5Error:
            return NO_LEVELS

    @override
    async def _children(self, path: str) -> Sequence[str]:
        if not path:
            return [f"setup{setup}" for setup in self._timepoints]
        if "/" not in path:
            match = _SETUP.fullmatch(path)
            timepoints = () if match is None else self._timepoints.get(int(match[1]), ())
            return [f"timepoint{timepoint}" for timepoint in timepoints]
        match = _VIEW.fullmatch(path)
        view = NO_LEVELS if match is None else await self._view((int(match[1]), int(match[2])))
        return [f"s{number}" for number in view.stored]
