"""Recognise whether a location is N5, for programs that ask many readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.storage.place import place_of
from n5zarr.store.bdv_xml import read_project, xml_file
from n5zarr.store.location import open_container

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.storage.place import Location

__all__ = ["is_n5"]


def is_n5(location: Location, storage_options: Mapping[str, object] | None = None) -> bool:
    """Whether other programs can leave a location to n5zarr.

    Local paths and XML files are looked at; of other URLs, the name decides. What is N5 but broken
    is N5: its error says more than that of a program which knows no N5.

    Parameters
    ----------
    location : path, URL or zarr store
        Any location.
    storage_options : dict, optional
        Options of fsspec, for a URL.
    """
    try:
        place = place_of(location, storage_options)
        xml = xml_file(place)
        if xml is not None:
            read_project(xml)
            return True
        if place.is_url:
            return "|n5:" in str(location) or place.is_named_n5
        store, path = open_container(place, read_only=True)
        return store.node(path) is not None
    except (N5UnrepresentableError, OSError):  # another program's XML; nothing
        return False
    except N5Error as err:
        return err.kind != "foreign"
