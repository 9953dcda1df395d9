"""Read the image loader of BigDataViewer's XML: the container that it names, and its views.

N5: bigdataviewer-core ``XmlIoN5ImageLoader`` (``bdv.n5``), MoBIE's ``XmlIoN5S3ImageLoader``
(``bdv.n5.s3``) and Mastodon's ``XmlIoN5UniverseImgLoader`` (``bdv.n5.universe``, also OME-Zarr as
MoBIE's loader, and HDF5: ``N5UniverseImgLoader``). OME-Zarr:
BigStitcher's ``XmlIoAllenOMEZarrLoader`` (``bdv.multimg.zarr``, versions 1.0 to 3.1), and MoBIE's
``XmlN5OmeZarrImageLoader`` (``bdv.ome.zarr``) and ``XmlN5S3OmeZarrImageLoader``
(``bdv.ome.zarr.s3``), in which a setup is a channel of one image. HDF5: bigdataviewer-core
``XmlIoHdf5ImageLoader`` (``bdv.hdf5``). Around one of them, also twice, there may be a loader of
split views, see :mod:`n5zarr.bigdataviewer.boxes`.

Paths of ``n5`` and ``zarr`` are parts of URIs, as is ``BasePath`` (spimdata
``XmlHelpers.loadPathURI``); those of other elements are paths of files (``loadPath``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from posixpath import join
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from n5zarr.bigdataviewer.boxes import SPLIT, SplitBox, boxes_in
from n5zarr.format.foreign import format_of_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


LEFT_IN_PATHS = "/:;@&=+$,!*'()"
"""Characters beside those of :func:`urllib.parse.quote` that ``java.net.URI`` leaves in a path."""

MOST_VIEWS = 1_000_000
"""Views of a project at most, as more are a mistake, or an attack."""

_MOST_SPLITS = 8  # of the same images
_NUMBER = re.compile(r"\s*[0-9]{1,10}\s*")  # ints in Java
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_QUOTED = re.compile("(?:file|https?):", re.IGNORECASE)  # URLs whose names stay quoted
# what java.net.URI refuses, or java.io.File after it
_ILLEGAL = re.compile(r"""%(?![0-9A-Fa-f]{2})|%00|[\s\x00-\x1f"<>\\^`{|}\[\]\x7f-\x9f]""")
# elements that each loader needs
_ELEMENTS = {
    "bdv.n5": ("n5",),
    "bdv.n5.s3": ("BucketName", "Key"),
    "bdv.n5.universe": ("Url",),
    "bdv.multimg.zarr": ("zarr",),
    "bdv.ome.zarr": ("ome.zarr",),
    "bdv.ome.zarr.s3": ("BucketName", "Key"),
    "ome.zarr.s3": ("BucketName", "Key"),
    "bdv.hdf5": ("hdf5",),
}


class ViewImage(NamedTuple):
    """The OME-Zarr image of a view.

    Parameters
    ----------
    path : str
        Path of the image in the container.
    indices : tuple of int, optional
        The volume of the view in an image with more than three axes: an index for each further
        axis, the one next to ``z`` first. Empty if those axes have one element.
    channel, timepoint : int or None, optional
        The volume of the view by its index along the axes ``c`` and ``t``, instead of ``indices``.
    """

    path: str
    indices: tuple[int, ...] = ()
    channel: int | None = None
    timepoint: int | None = None


class Loader(NamedTuple):
    """The location of a container, as an image loader names it.

    Parameters
    ----------
    location : str
        A path, relative to the XML or absolute, or a URL.
    group : str, optional
        Path of the group of the setups in the container, or of the image.
    endpoint : str, optional
        Address of the S3 service; empty for that of Amazon.
    region : str, optional
        Region of the S3 service.
    images : mapping of (int, int) to ViewImage or None, optional
        Images of OME-Zarr, by setup and time point; None for a container of N5. Empty if one image
        or file holds all views, see :meth:`with_views`.
    is_hdf5 : bool, optional
        Whether the views are in a file of HDF5.
    is_zarr_v3 : bool, optional
        Whether BigStitcher opens the images as Zarr v3; n5zarr looks at the images.
    splits : sequence of mapping of int to SplitBox, optional
        The box of each setup in an image, if the project is split; of one that is split again, the
        boxes in the images come first.
    """

    location: str
    group: str = ""
    endpoint: str = ""
    region: str = ""
    images: Mapping[tuple[int, int], ViewImage] | None = None
    is_hdf5: bool = False
    is_zarr_v3: bool = False
    splits: Sequence[Mapping[int, SplitBox]] = ()

    def with_views(self, setups: Collection[int], timepoints: Collection[int]) -> Loader:
        """Return the loader with the image of each view, also if one image holds all of them.

        Setups are the channels of such an image, time points its indices along ``t``; in HDF5, both
        are names. If there are more than :data:`MOST_VIEWS`, they stay empty.
        """
        is_of_views = self.images is None or self.images
        setups = self.setups_of_images(setups)
        if is_of_views or len(setups) * len(timepoints) > MOST_VIEWS:
            return self
        views = list(product(setups, timepoints))
        return self._replace(images={(s, t): ViewImage(self.group, (), s, t) for s, t in views})

    def setups_of_images(self, setups: Collection[int]) -> Collection[int]:
        """Return the setups that have images; others than those of the project if it is split."""
        return {box.setup for box in self.splits[0].values()} if self.splits else setups


def parse_loader(root: Element) -> Loader | str:
    """Parse the image loader below the root of the XML; return a description of any problem.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> def parse(loader):
    ...     sequence = f"<SequenceDescription>{loader}</SequenceDescription>"
    ...     return parse_loader(fromstring(f"<SpimData>{sequence}</SpimData>"))
    >>> parse('<ImageLoader format="bdv.n5"><n5 type="relative">my%20data.n5</n5></ImageLoader>')
    ... # doctest: +NORMALIZE_WHITESPACE
    Loader(location='my data.n5', group='', endpoint='', region='', images=None, is_hdf5=False,
           is_zarr_v3=False, splits=())
    >>> parse('<ImageLoader format="bdv.n5.s3"><BucketName>b</BucketName></ImageLoader>')
    'the format bdv.n5.s3 without the element Key'
    """
    # top level only: BigStitcher's loader of split views contains another loader with other setups
    loader = root.find("SequenceDescription/ImageLoader")
    splits: list[Mapping[int, SplitBox]] = []
    around = ""
    while loader is not None and loader.get("format") in SPLIT and len(splits) < _MOST_SPLITS:
        around = f"the format {loader.get('format')} around "
        boxes = boxes_in(loader)
        if isinstance(boxes, str):
            return around + boxes
        splits.insert(0, boxes)
        loader = loader.find("ImageLoader")
    found = "none" if loader is None else _parse(loader, base_path_in(root))
    return around + found if isinstance(found, str) else found._replace(splits=tuple(splits))


def _parse(loader: Element, base: str) -> Loader | str:
    kind = loader.get("format") or "bdv.n5"
    # other loaders with this element, such as bdv.n5.cloud, mean the same by it
    missing = [name for name in _ELEMENTS.get(kind, ("n5",)) if not _text(loader, name)]
    if missing and kind not in _ELEMENTS:
        return f"the format {kind}; n5zarr reads {', '.join((*_ELEMENTS, *SPLIT))}"
    if missing:
        return f"the format {kind} without the element {' and '.join(missing)}"
    return _parse_kind(kind, loader, base)


def _parse_kind(kind: str, loader: Element, base: str) -> Loader | str:
    match kind:
        case "bdv.n5.s3":
            return _s3_loader(loader, kind)
        case "bdv.ome.zarr.s3" | "ome.zarr.s3":
            found = _s3_loader(loader, kind)
            return found if isinstance(found, str) else found._replace(images={})
        case "bdv.hdf5" | "bdv.ome.zarr":
            place = _join_base(base, _text(loader, *_ELEMENTS[kind]))
            return Loader(place, images={}, is_hdf5=kind == "bdv.hdf5")
        case "bdv.n5.universe":
            return _universe_loader(loader, base)
        case "bdv.multimg.zarr":
            return _multimg_loader(loader, base)
        case _:
            return Loader(_join_base(base, _path(loader, "n5")))


def _universe_loader(loader: Element, base: str) -> Loader | str:
    """Parse Mastodon's loader, for which the name of the container tells the format."""
    place, group = _join_base(base, _text(loader, "Url")), _text(loader, "Dataset").strip("/")
    kind = format_of_name(place.partition("?")[0].rstrip("/").rpartition("/")[2])
    if kind == "hdf5" and group:
        return f"the format bdv.n5.universe with the Dataset {group!r} in HDF5; expected /"
    images: Mapping[tuple[int, int], ViewImage] | None = {} if kind in ("zarr", "hdf5") else None
    return Loader(place, group, images=images, is_hdf5=kind == "hdf5")


def _multimg_loader(loader: Element, base: str) -> Loader | str:
    """Parse BigStitcher's loader: one image for each view.

    Up to version 1.0 a ``zgroup`` has ``timepoint`` and an element ``path``, later ``tp`` and an
    attribute ``path``; since 3.0 also ``indicies``, as Java spells it.
    """
    images: dict[tuple[int, int], ViewImage] = {}
    for group in loader.iterfind("zgroups/zgroup"):
        path = (group.get("path") or _text(group, "path")).strip()
        indices = (group.get("indicies") or "").strip().strip("[]").replace(",", " ").split()
        numbers = [group.get("setup") or "", group.get("tp") or group.get("timepoint") or ""]
        if not path or not all(map(_NUMBER.fullmatch, numbers + indices)):
            return (
                "the format bdv.multimg.zarr with a zgroup that lacks the number of its setup or "
                f"time point, its path, or whole indicies: {dict(group.attrib)}"
            )
        setup, timepoint = map(int, numbers)
        images[setup, timepoint] = ViewImage(path, tuple(map(int, indices)))
    if not images:
        return "the format bdv.multimg.zarr without the element zgroup"
    bucket = _text(loader, "s3bucket")
    if bucket:
        return Loader(f"s3://{bucket}/{_text(loader, 'zarr').strip('/')}", images=images)
    location = _join_base(base, _path(loader, "zarr"))
    return Loader(location, images=images, is_zarr_v3=loader.get("zarr.version") == "ZarrV3")


def _s3_loader(loader: Element, kind: str) -> Loader | str:
    endpoint = _text(loader, "ServiceEndpoint")
    if endpoint and not re.match("https?://[^/]", endpoint):
        return f"the format {kind} with a ServiceEndpoint that is no web address, {endpoint!r}"
    return Loader(
        f"s3://{_text(loader, 'BucketName')}/{_text(loader, 'Key').strip('/')}",
        endpoint=endpoint,
        region=_text(loader, "SigningRegion"),
    )


def base_path_in(root: Element) -> str:
    """Return the directory to which the XML says that paths are relative; "." is that of the XML.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> base_path_in(fromstring('<S><BasePath type="relative">my%20data/</BasePath></S>'))
    'my data/'
    """
    return _path(root, "BasePath") or "."


def _path(parent: Element, name: str) -> str:
    """Return a path, as Java reads it: a part of a URI, a whole one, or an absolute path.

    Text that is no URI, which Java refuses, is taken as it is. In ``file:`` and web addresses,
    names stay quoted.
    """
    location = _text(parent, name)
    element = parent.find(name)
    is_relative = element is not None and element.get("type") == "relative"
    if _ILLEGAL.search(location.replace("\\", "/")) or _QUOTED.match(location):
        return location
    is_uri = is_relative or "\\" in location or _SCHEME.match(location)
    decoded = unquote(location) if is_uri else location
    # as Java writes a name with a colon
    return f"./{decoded}" if _SCHEME.match(decoded) and not _SCHEME.match(location) else decoded


def _join_base(base: str, location: str) -> str:
    if base == "." or _SCHEME.match(location):
        return location
    return join(base, quote(location, safe=LEFT_IN_PATHS) if _QUOTED.match(base) else location)


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
