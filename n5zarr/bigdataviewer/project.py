"""Open containers by BigDataViewer's XML: read it, and find the container that it names."""

from __future__ import annotations

import posixpath
import re
import stat
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote

from n5zarr.bigdataviewer.description import (
    Description,
    SetupSettings,
    parse_settings,
    parse_xml,
    problem_of,
)
from n5zarr.bigdataviewer.levels import Hdf5Views, OmeViews, ViewLevels
from n5zarr.bigdataviewer.loader import LEFT_IN_PATHS, MOST_VIEWS, Loader
from n5zarr.bigdataviewer.point_lists import labels_in
from n5zarr.bigdataviewer.shown_as_n5 import BdvImages
from n5zarr.bigdataviewer.split import N5Views, SplitViews
from n5zarr.bigdataviewer.views import names_of, views_without_images
from n5zarr.codecs.buffers import BufferLike
from n5zarr.container.options import require
from n5zarr.conventions.bdv import setup_of
from n5zarr.errors import N5Warning, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place, place_of
from n5zarr.storage.requests import Update, read_key, request_each
from n5zarr.storage.secrets import named
from n5zarr.storage.url import is_remote, is_url, local_path, split_query
from n5zarr.store.flows import read_root
from n5zarr.store.locating import Located
from n5zarr.store.location import named_root
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.hdf5_file import hdf5_file

# options of s3fs that say who asks
_CREDENTIALS = {"anon", "key", "secret", "token", "username", "password", "profile", "session"}


class XmlFile(NamedTuple):
    """An XML file, on a local disk or at a URL.

    Parameters
    ----------
    directory : Place
        The path or URL of the directory that holds it, with options for the file or the container.
    name : str
        Name of the file.
    """

    directory: Place
    name: str

    @classmethod
    def at(cls, place: Place) -> Self:
        """Return the file at a path or URL, with any name."""
        if isinstance(place.location, Path):
            return cls(replace(place, location=place.location.parent), place.location.name)
        host, below, query = _parts(str(place.location))
        directory, _, name = below.rpartition("/")
        return cls(replace(place, location=host + directory + query), name)

    def __str__(self) -> str:
        return f"{named(str(self.directory.location))}/{self.name}"

    def read(self) -> bytes:
        """Read the file.

        Raises
        ------
        FileNotFoundError
            The file does not exist.
        """
        data = self._stored()
        if data is None:
            message = f"{self}: expected BigDataViewer's XML, but the file does not exist"
            raise FileNotFoundError(message)
        return bytes(data)

    def exists(self) -> bool:
        """Whether the file exists."""
        return self._stored() is not None

    @property
    def resolved(self) -> str:
        """The path or URL, without links: equal for the same file."""
        if isinstance(self.directory.location, Path):
            return str((self.directory.location / self.name).resolve())
        return self._joined(self.name)

    @property
    def settings(self) -> Self:
        """The file of BigDataViewer's display settings beside it."""
        name = re.sub(r"(?i)\.xml(~[0-9]+)?\Z", "", self.name)
        return self._replace(name=f"{name}.settings.xml")

    def _stored(self) -> BufferLike | None:
        return self._storage(read_only=True).run(read_key(self.name))

    def update(self, change: Callable[[bytes | None], bytes | None]) -> None:
        """Replace the file by a function of its content, while no other program writes it."""
        if self.directory.is_url:
            self._update(change)
            return
        real = Path(str(self.directory.location), self.name).resolve()  # do not replace a link
        mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else None
        file = XmlFile(Place(real.parent), real.name)
        file._update(change)
        if mode is not None:
            real.chmod(mode)

    def _update(self, change: Callable[[bytes | None], bytes | None]) -> None:
        self._storage(read_only=False).run(request_each([Update(self.name, change)]))

    def beside(self, location: str) -> str:
        """Return the path or URL of a location in the XML, relative to the XML or absolute.

        Raises
        ------
        N5UnrepresentableError
            The XML is on a server, and names what may be on this machine (``kind="option"``).
        """
        if is_url(location):
            require(
                not self.directory.is_url or is_remote(location, str(self.directory.location)),
                f"{self}: expected a location on a server, as of the XML, got {named(location)}; "
                "download the XML to read local files by it",
            )
            return location
        if isinstance(self.directory.location, Path):
            return str((self.directory.location / local_path(location)).resolve())
        return self._joined(
            quote(location, safe=LEFT_IN_PATHS)
            if str(self.directory.location).lower().startswith(("http://", "https://"))
            else location
        )

    def _joined(self, location: str) -> str:
        """Return the URL of a location relative to the URL of the XML."""
        host, path, query = _parts(str(self.directory.location))
        # ".." ends at the host or bucket: its query may contain a token and must not go elsewhere
        inner = posixpath.normpath("/" + f"{path}/{location}".lstrip("/"))
        return host + (inner.lstrip("/") if _is_memory(host) else inner) + query

    def options_for(self, place: str, endpoint: str = "") -> Mapping[str, object] | None:
        """Return the options for a location in the XML; None for a host that a server chose.

        Parameters
        ----------
        place : str
            Path or URL of the location.
        endpoint : str, optional
            Address of the service that the XML names for it.
        """
        is_same = _host(place) == _host(str(self.directory.location))
        if self.directory.is_url and not (is_same and endpoint in ("", self._endpoint)):
            return None
        return self.directory.storage_options

    @property
    def _endpoint(self) -> object:
        """The service of S3 that the user named."""
        given = self.directory.storage_options or {}
        client = given.get("client_kwargs")
        of_client = client.get("endpoint_url") if isinstance(client, dict) else None
        return given.get("endpoint_url") or of_client

    def place_for(self, location: str) -> Place:
        """Return a location in the XML, with the library and the options that read it."""
        return self._place(location, self.options_for(location))

    def _place(self, location: str, options: Mapping[str, object] | None) -> Place:
        """Return a location with options, which are fsspec's unless they are those of this file."""
        is_as_file = is_url(location) and options is self.directory.storage_options
        return place_of(location, options, self.directory.backend if is_as_file else None)

    def _storage(self, *, read_only: bool) -> N5Store:
        """Return the directory as if it were a container, to read and write its files."""
        options = self.directory.storage_options if self.directory.is_url else None
        return N5Store(replace(self.directory, storage_options=options), read_only=read_only)


def _parts(url: str) -> tuple[str, str, str]:
    """Split a URL into scheme and host or bucket, path, and the query of a web server."""
    address, query = split_query(url)
    scheme, separator, rest = address.partition("://")
    host, slash, path = ("", "", rest) if _is_memory(url) else rest.partition("/")
    return scheme + separator + host, slash + path, query


def _is_memory(url: str) -> bool:
    return url.lower().partition("://")[0].endswith("memory")


def _host(url: str) -> str:
    """Return scheme and host or bucket, without a user."""
    return re.sub("://[^@]*@", "://", _parts(url)[0]).lower()


def xml_file(place: Place) -> XmlFile | None:
    """Return the file if a place is the path or URL of an XML file, by its name; else None."""
    if place.path or place.format != "bdv":
        return None
    is_directory = isinstance(place.location, Path) and place.location.is_dir()
    return None if is_directory else XmlFile.at(place)


class Project(NamedTuple):
    """The content of an XML file.

    Parameters
    ----------
    file : XmlFile
        The file.
    place : Place
        Its container, or the group of the setups in it.
    description : Description
        Its content.
    xml : bytes
        The file as it was read.
    """

    file: XmlFile
    place: Place
    description: Description
    xml: bytes

    def __str__(self) -> str:
        return str(self.file)

    def describe(self) -> dict[str, JSON]:
        """Return the content as plain JSON; tuples named ``..._n5`` are in the order x, y, z."""
        described = self.description
        timepoints = described.timepoints
        setups: list[JSON] = [
            {**self.describe_setup(number), "setup": number} for number in sorted(described.setups)
        ]
        project: dict[str, JSON] = {
            "xml": str(self.file),
            "timepoints": None if timepoints is None else list(timepoints),
            "setups": setups,
            "missing_views": [
                {"setup": setup, "timepoint": timepoint}
                for setup, timepoint in sorted(described.missing)
            ],
            "interest_points": dict(labels_in(self.xml)),
        }
        is_local = not is_url(self.file.beside(described.loader.location))
        absent = views_without_images(self.place, described) if is_local else ()
        if absent:  # a server would be asked for each view
            message = f"{self}: views without images: {names_of(absent)}"
            warnings.warn(message, N5Warning, stacklevel=2)
        return {"project": project}

    def describe_group(self, name: str) -> dict[str, JSON]:
        """Describe the setup of a group."""
        number = setup_of(name)
        return {} if number is None else {"setup": self.describe_setup(number)}

    def describe_setup(self, number: int) -> dict[str, JSON]:
        """Return names, size and voxel size of a setup; an empty dict if the XML lacks it."""
        setup = self.description.setups.get(number)
        if setup is None:
            return {}
        return {
            "name": setup.name,
            "names": dict(setup.names),
            "size_n5": list(setup.size),
            "voxel_size_n5": list(setup.voxel_size or ()),
            "unit": setup.unit,
            "tile_location_n5": list(setup.tile_location),
        }


def project_of(document: object) -> Project | None:
    """Return the project if the document beside a container is one."""
    return document if isinstance(document, Project) else None


def locate(place: Place, path: str = "") -> Located | None:
    """Return the container that BigDataViewer's XML names; None if there is no such file.

    The path of a node may follow that of the XML, as commands take one text.
    """
    is_root = place.format == "bdv" or place.is_named("n5")
    root = place if is_root else named_root(place, "bdv", "zarr") or place
    file = xml_file(replace(root, path=""))
    if file is None:
        return None
    project = read_project(file)
    return Located("bdv", project.place, join(root.path, path), project)


def described(file: XmlFile, xml: bytes, *, any_loader: bool = False) -> Description:
    """Parse the content of an XML file.

    Parameters
    ----------
    file, xml : XmlFile, bytes
        The file and its content.
    any_loader : bool, optional
        Whether the images, which are then not read, may have any format.

    Raises
    ------
    N5UnrepresentableError
        The XML is not BigDataViewer's, or its images have another format (``kind="option"``).
    """
    description = parse_xml(xml, any_loader=any_loader)
    if description is None:
        of = "" if any_loader else " of N5, OME-Zarr or HDF5"
        raise option_error(
            f"{file}: expected BigDataViewer's XML with an ImageLoader{of}, got "
            f"{problem_of(xml, any_loader=any_loader)}"
        )
    return description


def read_project(file: XmlFile) -> Project:
    """Read an XML file.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    N5UnrepresentableError
        The file is not BigDataViewer's, or its images have another format (``kind="option"``).
    """
    xml = file.read()
    description = described(file, xml)
    loader = description.loader
    n_views = max(map(len, loader.splits), default=0) * len(description.timepoints or (0,))
    require(
        (loader.images is None or loader.images) and n_views <= MOST_VIEWS,
        f"{file}: expected ViewSetups and Timepoints, at most 1000000 views, got none or more",
    )
    place = file.beside(loader.location)
    require(
        place != file.resolved,
        f"{file}: expected the path of a container in the ImageLoader, got the XML itself",
    )
    options = file.options_for(place, loader.endpoint)
    if place.startswith("s3://") and (loader.endpoint or loader.region):
        options = _for_s3(loader, options or {})
    container = file._place(place, options)  # noqa: SLF001
    return Project(
        file=file,
        place=_with_images(container, description),
        description=replace(description, name=str(file)),
        xml=xml,
    )


def _with_images(container: Place, description: Description) -> Place:
    """Return the place of the setups: in N5, or a container made of other images, or of boxes."""
    loader = description.loader
    if loader.images is None and not loader.splits:
        return replace(container, path=loader.group.strip("/"))
    source = _images(container, description.of_images or description)
    for boxes in loader.splits:
        source = SplitViews(source, boxes)
    voxel_sizes = {number: setup.voxel_size for number, setup in description.setups.items()}
    return Place(BdvImages(source, voxel_sizes))


def _images(container: Place, description: Description) -> ViewLevels:
    """Return the images of a project."""
    loader = description.loader
    if loader.images is None:
        place = replace(container, path=loader.group.strip("/"))
        store, group = Located("n5", place).open(writes=False)
        read_root(store, read_only=True)  # raises if there is none
        setups = sorted(loader.setups_of_images(description.setups))
        return N5Views(store, group, tuple(product(setups, description.timepoints or (0,))))
    if loader.is_hdf5:
        require(
            isinstance(container.location, Path),
            f"{named(str(container.location))}: expected HDF5 on a local disk, got a URL; download "
            "it first",
        )
        file = hdf5_file(str(container.location))
        return Hdf5Views(file, tuple(sorted(loader.images)))
    storage = open_storage(container, read_only=True)
    images = storage.store
    if not images.read_only:  # else the store of local files would create a missing directory
        images = images.with_read_only(read_only=True)
    sizes = {number: setup.size for number, setup in description.setups.items()}
    return OmeViews(images, str(storage), dict(sorted(loader.images.items())), sizes)


def _for_s3(loader: Loader, given: Mapping[str, object]) -> dict[str, object]:
    """Return options of fsspec for a service of S3; those of the user come first.

    Without the user's say no credentials are sent to a service that the XML chose.
    """
    of_xml = {"endpoint_url": loader.endpoint, "region_name": loader.region}
    own = given.get("client_kwargs")
    client = {key: value for key, value in of_xml.items() if value and key not in given}
    client |= own if isinstance(own, dict) else {}
    anonymous = {} if _CREDENTIALS & given.keys() else {"anon": True}
    return {**anonymous, **given, "client_kwargs": client}


def read_settings(project: Project) -> Mapping[int, SetupSettings]:
    """Read BigDataViewer's display settings of the setups of a project; empty if it has none.

    Reads ``NAME.settings.xml`` beside ``NAME.xml``.
    """
    try:
        return parse_settings(project.file.settings.read())
    except FileNotFoundError:
        return {}
