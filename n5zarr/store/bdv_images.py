"""Present the images of a BigDataViewer project as N5: ``setupN/timepointM/sK``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, override

from n5zarr.store.made_datasets import MadeDatasets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.store.bdv_levels import ViewId, ViewLevels
    from n5zarr.store.made_datasets import MadeDataset

__all__ = ["BdvImages"]

_NUMBER = "(0|[1-9][0-9]{0,9})"
_SETUP = re.compile(f"setup{_NUMBER}")
_VIEW = re.compile(f"{_SETUP.pattern}/timepoint{_NUMBER}")
_LEVEL = re.compile(f"{_VIEW.pattern}/s{_NUMBER}(?=/|$)")
_ROOT = b"{}"  # of no version of N5


class BdvImages(MadeDatasets):
    """The views of a project as a container of N5, read only.

    Parameters
    ----------
    source : ViewLevels
        The views.
    """

    refusal = "expected only reading of a project whose images are not N5; n5zarr.convert copies it"

    def __init__(self, source: ViewLevels) -> None:
        super().__init__()
        self.source = source
        self._levels: dict[ViewId, Mapping[int, MadeDataset]] = {}
        self._timepoints: dict[int, dict[int, None]] = {}  # of each setup
        for setup, timepoint in source.views:
            self._timepoints.setdefault(setup, {})[timepoint] = None

    def __str__(self) -> str:
        return str(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BdvImages) and self.source == other.source

    __hash__ = None  # as zarr's own stores

    def __getstate__(self) -> ViewLevels:
        return self.source

    def __setstate__(self, source: ViewLevels) -> None:
        self.__init__(source)  # type: ignore[misc] # with no memory

    @override
    def close(self) -> None:
        super().close()
        self.source.close()

    @override
    def confined(self) -> BdvImages:
        return BdvImages(self.source.confined())

    async def _view(self, view: ViewId) -> Mapping[int, MadeDataset]:
        """Return the levels of a view by number; none if its image does not exist."""
        setup, timepoint = view
        if view not in self._levels:
            exists = timepoint in self._timepoints.get(setup, {})
            self._levels[view] = await self.source.levels(view) if exists else {}
        return self._levels[view]

    @override
    async def _dataset(self, path: str) -> tuple[str, MadeDataset] | None:
        match = _LEVEL.match(path)
        if match is None:
            return None
        level = (await self._view((int(match[1]), int(match[2])))).get(int(match[3]))
        return None if level is None else (match[0], level)

    @override
    async def _group(self, path: str) -> bytes | None:
        return None if path else _ROOT

    @override
    async def _children(self, path: str) -> Sequence[str]:
        if not path:
            return [f"setup{setup}" for setup in self._timepoints]
        if "/" not in path:
            match = _SETUP.fullmatch(path)
            timepoints = () if match is None else self._timepoints.get(int(match[1]), ())
            return [f"timepoint{timepoint}" for timepoint in timepoints]
        match = _VIEW.fullmatch(path)
        view = {} if match is None else await self._view((int(match[1]), int(match[2])))
        return [f"s{number}" for number in view]
