"""Write projects of BigDataViewer: the XML, and a container with the images beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from n5zarr.container.options import check_option, require
from n5zarr.conventions.bdv_write import n5_loader, ome_loader
from n5zarr.images.ome import DEFAULT_VERSION, OME_FORMATS
from n5zarr.store.bdv_xml import described, xml_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element

    from n5zarr.conventions.bdv_registrations import View
    from n5zarr.images.ome import OmeVersion
    from n5zarr.storage.place import Place
    from n5zarr.store.bdv_xml import XmlFile

__all__ = ["NewProject", "ProjectFormat"]

type ProjectFormat = Literal["n5", "ome-zarr"]

_SUFFIXES = {"n5": ".n5", "ome-zarr": ".ome.zarr"}  # as BigStitcher names them
_DEFAULT: OmeVersion = "0.4"  # BigStitcher with multiview-reconstruction 8.0 reads no other


@dataclass(frozen=True, eq=False)
class NewProject:
    """A project to write.

    Parameters
    ----------
    file : XmlFile
        The XML.
    images : {"n5", "ome-zarr"}
        The format of the container.
    ome_version : {"0.4", "0.5"} or None
        The version of OME-Zarr.
    """

    file: XmlFile
    images: ProjectFormat
    ome_version: OmeVersion | None

    @classmethod
    def at(
        cls,
        place: Place,
        to: str | None,
        ome_version: OmeVersion | None,
        source: Place | None = None,
    ) -> Self | None:
        """Return the project to write at the path of an XML file; None for any other path.

        Parameters
        ----------
        place : Place
            The path.
        to : str or None
            The format of the images, as of :func:`n5zarr.convert`.
        ome_version : {"0.4", "0.5"} or None
            The version of OME-Zarr; by default that of the source, or 0.4.
        source : Place, optional
            The project that is resaved.

        Raises
        ------
        N5UnrepresentableError
            The format is none of a project (``kind="option"``).
        """
        file = xml_file(place)
        if file is None:
            return None
        require(
            to in _SUFFIXES,
            f"{file}: expected to='n5' or to='ome-zarr' (--to), the format of the images of the "
            f"project, got {to!r}",
        )
        check_option("ome_version", ome_version, (None, *OME_FORMATS))
        if to == "n5":
            require(ome_version is None, f"{file}: ome_version: expected only with to='ome-zarr'")
            return cls(file, "n5", None)
        return cls(file, "ome-zarr", ome_version or _version_of(source))

    @property
    def container(self) -> str:
        """Name of the container beside the XML."""
        return self.file.name.rpartition(".")[0] + _SUFFIXES[self.images]

    @property
    def place(self) -> Place:
        """The container."""
        location = self.file.beside(self.container)
        is_local = isinstance(self.file.directory.location, Path)
        return replace(self.file.directory, location=Path(location) if is_local else location)

    def loader(self, views: Iterable[View]) -> Element:
        """Make the element of the XML that names the container.

        Parameters
        ----------
        views : iterable of (int, int)
            Setups and time points that have an image.
        """
        if self.ome_version is None:
            return n5_loader(self.container)
        is_zarr_v3 = OME_FORMATS[self.ome_version] == 3
        return ome_loader(self.container, views, is_zarr_v3=is_zarr_v3)

    def check_free(self, *, may_exist: bool) -> None:
        """Raise if the XML exists, unless it may.

        Raises
        ------
        FileExistsError
            It does.
        """
        if not may_exist and self.file.exists():
            raise FileExistsError(
                f"{self.file}: expected a new file; overwrite=True (--overwrite) replaces it"
            )

    def write(self, xml: bytes) -> None:
        """Write the XML, after the images."""
        self.file.update(lambda _: xml)


def _version_of(source: Place | None) -> OmeVersion:
    """Return the version in which a project is resaved: its own if its XML states Zarr v3."""
    file = None if source is None else xml_file(source)
    is_zarr_v3 = file is not None and described(file, file.read()).loader.is_zarr_v3
    return DEFAULT_VERSION if is_zarr_v3 else _DEFAULT
