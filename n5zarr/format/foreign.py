"""Recognise what is not N5: Zarr by the names of its documents, files by their first bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from n5zarr.format.attributes import ATTRIBUTES_JSON

FIRST_BYTES = 4096  # of a file, as many as :func:`file_from` needs
ZARR_DOCUMENTS = frozenset({"zarr.json", ".zgroup", ".zarray"})

N5_DEFAULT = "n5_default"
"""The codec of Zarr whose chunks are blocks of N5, in a ``zarr.json`` beside a document of N5."""

_MARK = {"must_understand": False, "sidecar_of": ATTRIBUTES_JSON}  # a member that Zarr v3 allows

type Format = Literal["n5", "zarr", "hdf5", "tiff", "bdv", "zip"]
"""What can be at a location: N5, Zarr, HDF5, TIFF, the XML of BigDataViewer, or an archive."""

_ENDS: Mapping[Format, re.Pattern[str]] = {
    "n5": re.compile(r".\.n5\Z"),
    "zarr": re.compile(r".\.zarr\Z"),
    "hdf5": re.compile(r".\.(h5|hdf5|hdf|he5|nwb|mat)\Z", re.IGNORECASE),
    "tiff": re.compile(r".\.(tif|tiff|btf|tf8)\Z", re.IGNORECASE),
    "zip": re.compile(r".\.(zip|ozx)\Z", re.IGNORECASE),  # .ozx: OME-Zarr, RFC 9
    "bdv": re.compile(r".\.xml(~[0-9]+)?\Z", re.IGNORECASE),  # BigStitcher keeps dataset.xml~1
}

# "HDF5 File Format Specification", "Superblock": the signature is at byte 0, 512, 1024, 2048, ...
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # of a member; of an empty archive


def format_of_name(name: str) -> Format | None:
    """Return the format that the end of a name says; None if it says none.

    Examples
    --------
    >>> [format_of_name(name) for name in ("a.n5", "b.H5", "dataset.xml~2", "em")]
    ['n5', 'hdf5', 'bdv', None]
    """
    if "." not in name:  # most often, in less time
        return None
    return next((known for known, ends in _ENDS.items() if ends.search(name)), None)


def has_name_of_zarr(location: str) -> bool:
    """Whether a name in a path or URL ends in ``.zarr``, and none in ``.n5``."""
    if ".zarr" not in location:  # most often, in less time
        return False
    formats = set(map(format_of_name, location.replace("\\", "/").split("/")))
    return "zarr" in formats and "n5" not in formats


class Foreign(NamedTuple):
    """A format other than N5, in the words of a message.

    Parameters
    ----------
    what : str
        The format, such as ``"an HDF5 file"``.
    way : str
        The way out: how to open it.
    zarr_format : {2, 3}, optional
        The format of a node of Zarr, unless it has documents of both.
    kind : {"array", "group"}, optional
        What a node of Zarr is, if its document says so.
    """

    what: str
    way: str
    zarr_format: Literal[2, 3] | None = None
    kind: Literal["array", "group"] | None = None

    def __str__(self) -> str:
        return f"{self.what}; {self.way}"


def zarr_node(names: Collection[str], document: bytes | None = None) -> Foreign | None:
    """Return the kind of Zarr node of a directory.

    Parameters
    ----------
    names : collection of str
        The names in the directory.
    document : bytes, optional
        Its ``zarr.json``, which distinguishes groups from arrays.

    Returns
    -------
    Foreign or None
        None if the directory has no Zarr document.

    Examples
    --------
    >>> zarr_node(["em", "zarr.json"], b'{"zarr_format": 3, "node_type": "group"}').what
    'a Zarr v3 group'
    """
    kind: Literal["array", "group"] | None = None
    if "zarr.json" in names:
        given = _members(document).get("node_type")
        kind = given if given in ("group", "array") else None
        what = f"a Zarr v3 {kind or 'node'}"
    elif ".zarray" in names:
        kind, what = "array", "a Zarr v2 array"
    elif ".zgroup" in names:
        kind, what = "group", "a Zarr v2 group"
    else:
        return None
    formats: set[Literal[2, 3]] = {
        3 if name == "zarr.json" else 2 for name in ZARR_DOCUMENTS & {*names}
    }
    zarr_format = formats.pop() if len(formats) == 1 else None
    return Foreign(what, "open it with zarr.open(...) or xr.open_zarr(...)", zarr_format, kind)


def is_sidecar(document: bytes) -> bool:
    """Whether n5zarr 0.1.0 wrote a ``zarr.json`` beside a document of N5."""
    return _members(document).get("n5zarr") == _MARK


def has_blocks_of_n5(document: bytes) -> bool:
    """Whether a ``zarr.json`` describes the blocks of N5 beside it: a sidecar, or zarr-n5's."""
    codecs = _members(document).get("codecs")
    names = [c.get("name") for c in codecs if isinstance(c, dict)] if codecs else []
    return is_sidecar(document) or N5_DEFAULT in names


def holds_chunks_of_zarr(names: Iterable[str], document: bytes) -> bool:
    """Whether names in the directory of an array begin the keys of its chunks.

    Parameters
    ----------
    names : iterable of str
        The names.
    document : bytes
        Its ``zarr.json`` or ``.zarray``.

    Examples
    --------
    >>> [holds_chunks_of_zarr([name], b'{"zarr_format": 3}') for name in ("c", "c.0", "0")]
    [True, True, False]
    >>> of_v2 = b'{"zarr_format": 2, "shape": [3, 5]}'
    >>> [holds_chunks_of_zarr([name], of_v2) for name in ("0.0", "0", "s0")]
    [True, False, False]
    """
    members = _members(document)
    shape, encoding = members.get("shape"), members.get("chunk_key_encoding")
    encoding = encoding if isinstance(encoding, dict) else {}
    pattern = r"c(\.[0-9]+)*"
    if members.get("zarr_format") != 3 or encoding.get("name") == "v2":
        encoding = encoding.get("configuration") or {}
        separator = members.get("dimension_separator") or encoding.get("separator") or "."
        n_more = len(shape) - 1 if isinstance(shape, list) and shape and separator == "." else 0
        pattern = rf"[0-9]+(\.[0-9]+){{{n_more}}}"
    return any(re.fullmatch(pattern, name) for name in names)


def _members(document: bytes | None) -> dict[str, Any]:
    """Parse a document of Zarr; return no members of a broken one."""
    try:
        parsed = json.loads(document or b"")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def file_from(start: bytes) -> Foreign:
    """Recognise the format of a file.

    Parameters
    ----------
    start : bytes
        The first :data:`FIRST_BYTES` bytes of the file.
    """
    if any(start.startswith(_HDF5, offset) for offset in (0, 512, 1024, 2048)):
        return Foreign(
            "an HDF5 file",
            "open it with h5py.File(...); n5zarr convert makes N5 of it, n5zarr nwb convert of NWB",
        )
    if start.startswith(_ZIP):
        return Foreign("a zip file", "zip://PATH opens an N5 container in it")
    if b"<SpimData" in start:
        return Foreign("an XML file of BigDataViewer", "open it with n5zarr.open_bdv(...)")
    return Foreign("a file", "a container is a directory: check the path")


def root_in_zip(
    names: Collection[str], documents: Collection[str] = (ATTRIBUTES_JSON,)
) -> str | None:
    """Find the topmost document of N5, or another one, in an archive.

    Parameters
    ----------
    names : collection of str
        The names of its members.
    documents : collection of str, optional
        The names of documents.

    Returns
    -------
    str or None
        The directory of the document, ``""`` at the top; None if there is no document.

    Examples
    --------
    >>> root_in_zip(["a.n5/em/attributes.json", "a.n5/attributes.json", "b"])
    'a.n5'
    """
    found = [name for name in names if name.rpartition("/")[2] in documents]
    if not found:
        return None
    return min(found, key=lambda name: (name.count("/"), name)).rpartition("/")[0]
