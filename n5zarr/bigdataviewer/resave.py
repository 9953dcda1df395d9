"""Write projects of BigDataViewer, also from others: the XML, and a container with the images."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from n5zarr.bigdataviewer.images import project_images, with_setups
from n5zarr.bigdataviewer.point_lists import base_path, labels_in
from n5zarr.bigdataviewer.project import Project, XmlFile, described, project_of, xml_file
from n5zarr.bigdataviewer.registrations import View
from n5zarr.bigdataviewer.writing_xml import n5_loader, ome_loader, with_loader
from n5zarr.bigdataviewer.xml_text import elements_at
from n5zarr.container.options import check_option, require
from n5zarr.conventions.bdv import view_of
from n5zarr.errors import ErrorsAt
from n5zarr.images.find import ome_tree, warn_of
from n5zarr.images.ome import DEFAULT_VERSION, OME_FORMATS, OmeVersion
from n5zarr.images.source import SourceTree
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.tools.convert.copies import FileCopy, Folder

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


type ProjectFormat = Literal["n5", "ome-zarr"]

_SUFFIXES = {"n5": ".n5", "ome-zarr": ".ome.zarr"}  # as BigStitcher names them
_DEFAULT: OmeVersion = "0.4"  # BigStitcher with multiview-reconstruction 8.0 reads no other
# beside the XML, in newer and older versions
_POINTS = ("interestpoints.n5", "interestpoints.zarr", "interestpoints")
_PSF = "SpimData/PointSpreadFunctions/PointSpreadFunction"


@dataclass(frozen=True, eq=False)
class NewProject:
    """A project to write.

    Parameters
    ----------
    file : XmlFile
        The XML.
    images : {"n5", "ome-zarr"}
        The format of the container.
    ome_version : {"0.4", "0.5", "0.6"} or None
        The version of OME-Zarr.
    """

    file: XmlFile
    images: ProjectFormat
    ome_version: OmeVersion | None

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
            The XML exists.
        """
        if not may_exist and self.file.exists():
            raise FileExistsError(
                f"{self.file}: expected a new file; overwrite=True (--overwrite) replaces it"
            )

    def write(self, xml: bytes) -> None:
        """Write the XML, after the images."""
        self.file.update(lambda _: xml)

    def resaving(self, tree: SourceTree) -> Resaving:
        """Check that a source can be resaved as this project; see :meth:`Resaving.of`."""
        return Resaving.of(tree, self)


def new_project(
    place: Place, to: str | None, ome_version: OmeVersion | None, source: Place | None = None
) -> NewProject | None:
    """Return the project to write at the path of an XML file; None for any other path.

    Parameters
    ----------
    place : Place
        The path.
    to : str or None
        The format of the images, as of :func:`n5zarr.convert`.
    ome_version : {"0.4", "0.5", "0.6"} or None
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
        return NewProject(file, "n5", None)
    return NewProject(file, "ome-zarr", ome_version or _version_of(source))


def _version_of(source: Place | None) -> OmeVersion:
    """Return the version in which a project is resaved: its own if its XML states Zarr v3."""
    file = None if source is None else xml_file(source)
    is_zarr_v3 = file is not None and described(file, file.read()).loader.is_zarr_v3
    return DEFAULT_VERSION if is_zarr_v3 else _DEFAULT


@dataclass(frozen=True, eq=False)
class Resaving:
    """A project, and the new one.

    Parameters
    ----------
    project : Project
        The project that is written anew.
    new : NewProject
        The one to write.
    new_xml : bytes
        The content of the new XML.
    """

    project: Project
    new: NewProject
    new_xml: bytes

    @classmethod
    def of(cls, tree: SourceTree, new: NewProject) -> Resaving:
        """Check that a source is a project, and another one than the new one.

        Raises
        ------
        N5UnrepresentableError
            The source is no other project, or its XML cannot be changed (``kind="option"``).
        """
        project = project_of(tree.document)
        require(
            project is not None,
            f"{tree.name}: expected the XML of a project as the source of {new.file}, got none; "
            "n5zarr.write_bdv writes arrays as a project",
        )
        assert project is not None  # noqa: S101 - see above
        require(
            project.file.resolved != new.file.resolved,
            f"{new.file}: expected another XML than that of the source",
        )
        views = {view_of(tuple(path.split("/"))) for path in tree.arrays}
        loader = new.loader(sorted(view for view in views if view is not None))
        with ErrorsAt(str(project.file)):
            return cls(project, new, with_loader(project.xml, loader))

    def tree(self, found: SourceTree) -> SourceTree:
        """Return the arrays as the new project has them."""
        version = self.new.ome_version
        if version is None:
            return with_setups(found)
        images = project_images(found)
        warn_of(images)
        return ome_tree(images, version)

    def folders(self, *, may_exist: bool) -> list[FileCopy]:
        """Return copies of the interest points and of the functions beside the XML.

        Parameters
        ----------
        may_exist : bool
            Whether files that are copied may replace others.

        Raises
        ------
        N5UnrepresentableError
            A file to write exists, perhaps of another project (``kind="option"``).
        """
        names = [*_POINTS] if labels_in(self.project.xml) else []
        names += ["psf"] if elements_at(self.project.xml, _PSF) else []
        old = self.project.file
        source, target = old.beside(base_path(self.project.xml)), self.new.file.beside(".")
        if not names or source == target:
            return []
        read = open_storage(old.place_for(source), read_only=True)
        written = open_storage(self.new.file.directory)
        copies = [FileCopy(Folder(read, name), Folder(written, name)) for name in names]
        for name, copy in zip(names, copies, strict=True):
            others = copy.target.names() - (copy.source.names() if may_exist else set())
            require(
                not others,
                f"{self.new.file.beside(name)}: expected none of another project, got "
                f"{min(others, default='')}; write to another folder, or remove it; "
                "overwrite=True (--overwrite) replaces files of the same names",
            )
        return copies

    def write(self) -> None:
        """Write the XML, and BigDataViewer's display settings."""
        with suppress(FileNotFoundError):
            settings = self.project.file.settings.read()
            self.new.file.settings.update(lambda _: settings)
        self.new.write(self.new_xml)
