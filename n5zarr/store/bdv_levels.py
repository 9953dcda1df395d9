"""Define the views of a project whose levels become datasets of N5 when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.made_datasets import MadeDataset

__all__ = ["ViewId", "ViewLevels", "factors_attribute"]

type ViewId = tuple[int, int]
"""Numbers of setup and time point."""


def factors_attribute(factors: Sequence[float]) -> dict[str, JSON]:
    """Return the attribute of a level for its downsampling factors, N5 order.

    Examples
    --------
    >>> factors_attribute((2.0, 2.0, 1.5))
    {'downsamplingFactors': [2, 2, 1.5]}
    """
    return {"downsamplingFactors": [int(f) if f.is_integer() else f for f in factors]}


class ViewLevels(Protocol):
    """The views of a project, which open their levels when these are needed."""

    @property
    def views(self) -> Sequence[ViewId]:
        """The views that may exist."""

    async def levels(self, view: ViewId) -> Mapping[int, MadeDataset]:
        """Open the levels of a view, by number; none if it does not exist."""

    def confined(self) -> ViewLevels:
        """Return the same views, without local files that links take out of the container."""

    def close(self) -> None:
        """Close what is open; reading opens it again."""
