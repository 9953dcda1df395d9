"""Resave a project of BigStitcher in another format, so that BigStitcher goes on with it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from n5zarr.container.options import require
from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.bdv_write import with_loader
from n5zarr.conventions.interest_points import base_path, labels_in
from n5zarr.conventions.xml_text import elements_at
from n5zarr.errors import ErrorsAt
from n5zarr.images.find import ome_tree, warn_of
from n5zarr.images.in_project import project_images, with_setups
from n5zarr.storage.opening import open_storage
from n5zarr.tools.convert.files import FileCopy, Folder

if TYPE_CHECKING:
    from n5zarr.images.source import SourceTree
    from n5zarr.store.bdv_xml import Project
    from n5zarr.tools.convert.new_project import NewProject

__all__ = ["Resaving"]

# beside the XML, in newer and older versions
_POINTS = ("interestpoints.n5", "interestpoints.zarr", "interestpoints")
_PSF = "SpimData/PointSpreadFunctions/PointSpreadFunction"


@dataclass(frozen=True, eq=False)
class Resaving:
    """A project, and the new one.

    Parameters
    ----------
    project : Project
        What is resaved.
    new : NewProject
        Where.
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
            It is not, or its XML cannot be changed (``kind="option"``).
        """
        project = tree.project
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
            There are others, which may be another project's (``kind="option"``).
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
