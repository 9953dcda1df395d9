"""Define the views of a project whose levels become datasets of N5 when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from n5zarr.conventions.factors import factors_in_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.made_datasets import MadeDataset

__all__ = ["NO_LEVELS", "StoredLevels", "ViewId", "ViewLevels", "factors_attribute"]

type ViewId = tuple[int, int]
"""Numbers of setup and time point."""


def factors_attribute(factors: Sequence[float]) -> dict[str, JSON]:
    """Return the attribute of a level for its downsampling factors, N5 order.

    Examples
    --------
    >>> factors_attribute((2.0, 2.0, 1.5))
    {'downsamplingFactors': [2, 2, 1.5]}
    """
    return {"downsamplingFactors": factors_in_json(factors)}


class StoredLevels(NamedTuple):
    """The levels of a view.

    Parameters
    ----------
    factors : sequence of sequence of float
        Downsampling factors of each level of its image, N5 order, also of those without an array.
    stored : mapping of int to MadeDataset
        The levels that have an array, by number.
    """

    factors: Sequence[Sequence[float]]
    stored: Mapping[int, MadeDataset]


NO_LEVELS = StoredLevels((), {})
"""Those of a view that does not exist."""


class ViewLevels(Protocol):
    """The views of a project, which open their levels when these are needed."""

    @property
    def views(self) -> Sequence[ViewId]:
        """The views that may exist."""

    async def levels(self, view: ViewId) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""

    def confined(self) -> ViewLevels:
        """Return the same views, without local files that links take out of the container."""

    def close(self) -> None:
        """Close what is open; reading opens it again."""
