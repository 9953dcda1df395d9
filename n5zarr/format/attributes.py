"""Read ``attributes.json``: tell datasets from groups, and parse what describes a dataset.

N5 spec, "File-system specification", items 2 and 4. N5's own keys and the users' attributes are
members of the same object.

Java: ``DatasetAttributesAdapter``; for N5 before 4.0, n5-3.5.1 ``DatasetAttributes.from``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from n5zarr.errors import N5AttributesError, Problem
from n5zarr.format.block import MAX_NDIM
from n5zarr.format.compression import Compression, Raw, parse_compression
from n5zarr.format.data_type import DataType, numpy_type, same_bytes
from n5zarr.format.grid import block_extent, grid_shape
from n5zarr.format.lenient_json import JSON, as_integer
from n5zarr.format.order import N5Tuple
from n5zarr.format.version import VERSION_KEY, is_version

ATTRIBUTES_JSON = "attributes.json"
"""N5 spec, "File-system specification", item 2: the name of the file in each directory."""

ZARR_KEY = "zarr"
"""The only key that n5zarr adds; holds what N5 cannot express, see `n5zarr.zarr_view.record`."""

# N5 spec, "File-system specification", item 4; `compressionType`: N5 1.x, `codecs`: Java N5 4
DATASET_KEYS = ("dimensions", "blockSize", "dataType", "compression", "compressionType", "codecs")

READ_SHARDS = 'the recipe "Read shards of Java N5 4" in the cookbook of n5zarr reads them'
"""The way out for messages about shards of Java N5 4."""

_BLOCK: Final[JSON] = {"name": "n5bytes"}  # of Java N5 4: an ordinary block
_MAX_EXTENT = 2**31 - 1  # elements of a block along an axis: N5 says int32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAttributes:
    """A group that is not a dataset.

    N5 spec, "File-system specification", item 2.

    Parameters
    ----------
    attributes : mapping
        The users' attributes, in the order of the document.
    record : JSON, optional
        The value of :data:`ZARR_KEY`; None if absent.
    """

    attributes: Mapping[str, JSON]
    record: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetAttributes:
    """A dataset as its ``attributes.json`` describes it.

    N5 spec, "File-system specification", item 4.

    Parameters
    ----------
    dimensions : tuple of int
        Extent in elements, N5 order.
    block_size : tuple of int
        Extent of a full block in elements, N5 order.
    data_type : DataType
        Type of the elements; where ``numpy_type`` is set, the type with the same bytes.
    compression : Compression
        How payloads are compressed.
    attributes : mapping
        The users' attributes, in the order of the document.
    record : JSON, optional
        The value of :data:`ZARR_KEY`; None if absent.
    has_block_size : bool, optional
        Whether the document has ``blockSize``; without it, ``block_size`` is ``dimensions``.
    numpy_type : numpy.dtype, optional
        Type of the elements where zarr-python 2 wrote one that N5 does not have; see
        :func:`~n5zarr.format.data_type.numpy_type`.
    """

    dimensions: N5Tuple
    block_size: N5Tuple
    data_type: DataType
    compression: Compression
    attributes: Mapping[str, JSON]
    record: JSON = None
    has_block_size: bool = field(default=True, repr=False)
    numpy_type: np.dtype[np.generic] | None = field(default=None, repr=False)

    @property
    def type_name(self) -> str:
        """The value of ``dataType``."""
        return self.data_type.value if self.numpy_type is None else self.numpy_type.name

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    @property
    def grid(self) -> N5Tuple:
        """Number of blocks along each axis, N5 order."""
        return grid_shape(self.dimensions, self.block_size)

    def extent_of(self, position: N5Tuple) -> N5Tuple:
        """Return the extent of a block, N5 order; see :func:`~n5zarr.format.grid.block_extent`."""
        return block_extent(self.dimensions, self.block_size, position)

    @property
    def is_label_multiset(self) -> bool:
        """Whether the elements are bytes of label multisets, which Paintera writes."""
        return self.data_type is DataType.UINT8 and self.attributes.get("isLabelMultiset") is True

    @property
    def may_be_group(self) -> bool:
        """Whether the directory has to be listed to tell whether this is a dataset or a group.

        BigStitcher writes all keys of a dataset to the group ``setupN`` too. Only there
        ``downsamplingFactors`` is a list of lists.
        """
        return _is_marked_by_bigstitcher(self.attributes)


def dataset_keys(document: Mapping[str, JSON]) -> list[str]:
    """List the keys of a document that describe a dataset."""
    return [key for key in DATASET_KEYS if key in document]


def missing_dataset_keys(document: JSON) -> list[str]:
    """List the keys that a document lacks to describe a dataset.

    Examples
    --------
    >>> missing_dataset_keys({"dataType": "uint8", "dimensions": [3], "blockSize": [2]})
    ['compression']
    """
    if not isinstance(document, dict):
        return ["dimensions", "dataType", "compression"]
    missing = [key for key in ("dimensions", "dataType") if key not in document]
    compressed = "compression" in document or "compressionType" in document
    return missing if compressed or has_java_codecs(document) else [*missing, "compression"]


def has_java_codecs(document: Mapping[str, JSON]) -> bool:
    """Whether ``codecs`` is the list that Java N5 4 may write, rather than a user's attribute."""
    return isinstance(document.get("codecs"), list)


def is_dataset(document: JSON) -> bool:
    """Whether a document describes a dataset.

    N5 spec, "File-system specification", item 4, with Java's exceptions:

    ==============  ============  ===================================================  =======
    ``dimensions``  ``dataType``  ``compression``, ``compressionType`` or ``codecs``  dataset
    ==============  ============  ===================================================  =======
    yes             yes           yes                                                  yes
    any other combination                                                              no
    ==============  ============  ===================================================  =======

    ``blockSize`` may be absent: N5 before 4.0 then takes one block of the size of the dataset. A
    document that is not an object makes a group without attributes.
    """
    return not missing_dataset_keys(document)


def _is_marked_by_bigstitcher(document: Mapping[str, JSON]) -> bool:
    """Whether ``downsamplingFactors`` is a list of lists, as BigStitcher writes it to groups."""
    factors = document.get("downsamplingFactors")
    return isinstance(factors, list) and any(isinstance(f, list) for f in factors)


def describes_array(document: JSON, *, is_group: bool = False) -> bool:
    """Whether a node is an array, judged by its document and an earlier listing.

    Parameters
    ----------
    document : JSON
        The node's document.
    is_group : bool, optional
        Whether an earlier listing showed that the node is a group. Decides only where the document
        alone does not (:attr:`DatasetAttributes.may_be_group`), since another program may have made
        the node a dataset after the listing.
    """
    if not isinstance(document, dict) or not is_dataset(document):
        return False
    return not (is_group and _is_marked_by_bigstitcher(document))


def own_keys(
    document: Mapping[str, JSON], *, is_group: bool = False, is_root: bool = True
) -> tuple[str, ...]:
    """List the keys of a document that belong to N5 or n5zarr; all others are users' attributes.

    Parameters
    ----------
    document : mapping
        The node's document.
    is_group : bool, optional
        Whether the node is known to be a group, whatever keys its document has: BigDataViewer's
        setups have ``dataType``, BigStitcher's have all keys of a dataset.
    is_root : bool, optional
        Whether the node is the root, where ``n5`` is the version of the container. On other groups
        ``n5`` is an attribute, unless its value is a version that N5 writes.
    """
    if is_group or not is_dataset(document):
        is_own = is_root or is_version(document.get(VERSION_KEY))
        return (VERSION_KEY, ZARR_KEY) if is_own else (ZARR_KEY,)
    keys = DATASET_KEYS if has_java_codecs(document) else DATASET_KEYS[:-1]
    return (*keys, VERSION_KEY, ZARR_KEY)


def group_attributes(document: Mapping[str, JSON], *, is_root: bool) -> GroupAttributes:
    """Parse the document of a group, which may have keys of a dataset."""
    own = own_keys(document, is_group=True, is_root=is_root)
    return GroupAttributes(attributes=_without(document, own), record=document.get(ZARR_KEY))


def parse_attributes(
    document: JSON, *, is_root: bool = True
) -> DatasetAttributes | GroupAttributes:
    """Turn the JSON of an ``attributes.json`` into the description of a dataset or a group.

    N5 spec, "File-system specification", items 2 and 4.

    Parameters
    ----------
    document : JSON
        The document, or None if the directory has none.
    is_root : bool, optional
        Whether the node is the root, see :func:`own_keys`.

    Returns
    -------
    DatasetAttributes or GroupAttributes
        With the users' attributes separated from N5's keys.

    Raises
    ------
    N5AttributesError
        A dataset's key has a wrong value. All problems are reported together.

    Examples
    --------
    >>> parse_attributes({"dimensions": [7, 5], "dataType": "uint8", "compressionType": "raw"})
    ... # doctest: +NORMALIZE_WHITESPACE
    DatasetAttributes(dimensions=(7, 5), block_size=(7, 5), data_type=<DataType.UINT8: 'uint8'>,
                      compression=Raw(), attributes={}, record=None)
    """
    if not isinstance(document, dict):
        return GroupAttributes(attributes={})
    if is_dataset(document):
        return _parse_dataset(document)
    return group_attributes(document, is_root=is_root)


def _without(document: Mapping[str, JSON], keys: tuple[str, ...]) -> dict[str, JSON]:
    return {key: value for key, value in document.items() if key not in keys}


def _parse_dataset(document: Mapping[str, JSON]) -> DatasetAttributes:
    """Parse the mandatory attributes of a dataset: N5 spec, "File-system specification", item 4."""
    problems: list[Problem] = []
    dimensions = _integers(document, "dimensions", 0, 2**63 - 1, problems)
    if "blockSize" in document:
        block_size = _integers(document, "blockSize", 1, _MAX_EXTENT, problems)
    else:
        block_size = _one_block(dimensions, problems)
    if not problems and len(dimensions) != len(block_size):
        message = f"expected {len(dimensions)} entries, one per dimension, got {len(block_size)}"
        problems.append(Problem(("blockSize",), message))
    data_type, dtype = _data_type(document["dataType"], problems)
    compression = _compression(document, problems)
    if problems or data_type is None or compression is None:
        raise N5AttributesError(problems)
    return DatasetAttributes(
        dimensions=dimensions,
        block_size=block_size,
        data_type=data_type,
        compression=compression,
        attributes=_without(document, own_keys(document)),
        record=document.get(ZARR_KEY),
        has_block_size="blockSize" in document,
        numpy_type=dtype,
    )


def _one_block(dimensions: N5Tuple, problems: list[Problem]) -> N5Tuple:
    """Return the block size of a dataset that names none, as n5 before 4.0 writes: one block."""
    largest = max(dimensions, default=0)
    if largest > _MAX_EXTENT:
        message = (
            f"expected a list, as the dimension {largest} is more than the {_MAX_EXTENT} elements "
            f"that a block can have, got none"
        )
        problems.append(Problem(("blockSize",), message))
    return N5Tuple(tuple(max(d, 1) for d in dimensions))


def _integers(
    document: Mapping[str, JSON], key: str, low: int, high: int, problems: list[Problem]
) -> N5Tuple:
    """Parse a list of integers, one per dimension."""
    values = document[key]
    if not isinstance(values, list) or len(values) > MAX_NDIM:
        message = f"expected a list of at most {MAX_NDIM} integers, got {values!r:.80}"
        problems.append(Problem((key,), message))
        return N5Tuple(())
    integers = []
    for i, value in enumerate(values):
        try:
            integers.append(as_integer(value, low, high))
        except ValueError as err:
            problems.append(Problem((key, i), str(err)))
    return N5Tuple(tuple(integers))


def _data_type(
    value: JSON, problems: list[Problem]
) -> tuple[DataType | None, np.dtype[np.generic] | None]:
    """Parse ``dataType`` into N5's type, and the dtype where zarr-python 2 wrote numpy's name."""
    if isinstance(value, str) and value in DataType:
        return DataType(value), None
    dtype = numpy_type(value) if isinstance(value, str) else None
    if dtype is not None:
        return same_bytes(dtype), dtype
    message = (
        f"expected one of {', '.join(DataType)}, or bool, float16, datetime64[unit] or "
        f"timedelta64[unit] of zarr-python 2, got {value!r:.80}; convert it with the program that "
        "wrote it"
    )
    problems.append(Problem(("dataType",), message, "data-type"))
    return None, None


def _compression(document: Mapping[str, JSON], problems: list[Problem]) -> Compression | None:
    """Parse the compression, or the ``codecs`` of Java N5 4, which win over it."""
    codecs = document.get("codecs")
    if isinstance(codecs, list):
        compression = _compression_of(codecs)
        if compression is None:
            problems.append(Problem(("codecs",), _unreadable(codecs), "compression"))
        return compression
    # Java: `compression` wins where both keys are present
    key = "compressionType" if "compression" not in document else "compression"
    try:
        return parse_compression(document[key], (key,))
    except N5AttributesError as err:
        problems.extend(err.problems)
        return None


def _compression_of(codecs: Sequence[JSON]) -> Compression | None:
    """Return the compression that ``codecs`` stand for; None if no ordinary block has them.

    Java: ``DatasetAttributes.java``; ``n5bytes`` is the header and the elements, big-endian.
    """
    if not codecs or codecs[0] != _BLOCK or len(codecs) > 2:
        return None
    if len(codecs) == 1:
        return Raw()
    codec = codecs[1]
    if not isinstance(codec, dict):
        return None
    configuration = codec.get("configuration")
    members = configuration if isinstance(configuration, dict) else {}
    try:
        return parse_compression({"type": codec.get("name"), **members})
    except N5AttributesError:
        return None


def _unreadable(codecs: list[JSON]) -> str:
    """Describe ``codecs`` that no ordinary block has.

    Java: ``DefaultShardCodecInfo.java``; only programs that register an adapter write shards so.
    """
    if codecs and isinstance(codecs[0], dict) and codecs[0].get("name") == "sharding_indexed":
        return f"expected blocks, got shards of Java N5 4; {READ_SHARDS}"
    return (
        f"expected 'n5bytes' and at most one compression of N5, got {codecs!r:.80}; n5zarr has no "
        "others, and Java N5 4 needs an adapter for each of them: write the dataset again with "
        "`compression` only, by the program that wrote it"
    )
