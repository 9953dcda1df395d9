"""Read what BigDataViewer's XML says of the datasets of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.bigdataviewer.description import Description, parse_xml
from n5zarr.conventions.bdv import view_of
from n5zarr.format.path import join
from n5zarr.storage.requests import FileThatNames, Steps

if TYPE_CHECKING:
    from n5zarr.conventions.model import SetupView

__all__ = ["find_view", "read_description"]


def find_view(path: str) -> Steps[SetupView | None]:
    """Read setup and time point of a level from BigDataViewer's XML; None for other datasets."""
    names = tuple(path.split("/"))
    numbers = view_of(names)
    if numbers is None:
        return None
    description = yield from read_description("/".join(names[:-3]))
    return None if description is None else description.view(*numbers)


def read_description(path: str) -> Steps[Description | None]:
    """Read BigDataViewer's XML: in the group of the setups, or in a directory above it.

    The search ends in the directory that holds the container.

    Parameters
    ----------
    path : str
        Path of the group of the setups.
    """

    def location(data: bytes) -> str | None:
        description = parse_xml(data)
        return None if description is None else join(*description.loader[:2])

    (xml,) = yield [FileThatNames(path, "*.xml", location)]
    return None if xml is None else parse_xml(xml)
