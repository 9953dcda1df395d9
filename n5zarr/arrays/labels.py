"""Turn new datasets of labels into datasets of Paintera's label multisets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from n5zarr.errors import option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.storage.requests import Update, request_each

if TYPE_CHECKING:
    import numpy.typing as npt

    from n5zarr.store.n5_store import N5Store

__all__ = ["as_multisets", "labels_to_write", "largest_id", "make_multisets"]


def labels_to_write(
    labels: np.ndarray | None, dtype: npt.DTypeLike | None, fill_value: object
) -> tuple[np.ndarray | None, str]:
    """Return labels as uint64, with that type.

    Raises
    ------
    N5UnrepresentableError
        They are no integers, another dtype than uint64 is asked for, or a fill value other than the
        background (``kind="option"``).
    """
    if labels is not None and labels.dtype.kind not in "iu":
        raise option_error(f"data: expected integers for label_multiset, got {labels.dtype}")
    if dtype is not None and np.dtype(dtype) != np.uint64:
        raise option_error(f"dtype: expected uint64 for label_multiset, got {np.dtype(dtype)}")
    if fill_value not in (None, 0):
        raise option_error(
            f"fill_value: expected 0, the background of label_multiset, got {fill_value!r}"
        )
    return None if labels is None else labels.astype("u8", copy=False), "uint64"


def largest_id(labels: np.ndarray) -> int:
    """Return the largest label, compared as int64 as in Java; 0 for none."""
    return int(labels.astype("u8", copy=False).view("i8").max(initial=0))


def as_multisets(document: bytes, max_id: int | None = None) -> bytes:
    """Return the document of a dataset of uint64 as one of label multisets.

    imglib2 ``N5LabelMultisets.saveLabelMultiset``; ``maxId`` as ``ConvertToLabelMultisetType`` of
    label-utilities-spark writes it.

    Parameters
    ----------
    document : bytes
        The ``attributes.json``.
    max_id : int, optional
        Largest label.
    """
    raw = RawObject.parse(document)
    raw.set("dataType", "uint8")
    raw.set("isLabelMultiset", True)  # noqa: FBT003 - a value of JSON
    if max_id is not None:
        raw.set("maxId", max_id)
    return raw.to_bytes()


def make_multisets(store: N5Store, path: str, labels: np.ndarray | None) -> None:
    """Turn a new dataset of uint64, without blocks, into one of label multisets.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Path of the dataset.
    labels : numpy.ndarray or None
        The labels that will be written, if they are known.
    """
    max_id = None if labels is None else largest_id(labels)

    def change(document: bytes | None) -> bytes:
        return as_multisets(document or b"{}", max_id)

    store.run(request_each([Update(join(path, ATTRIBUTES_JSON), change)]))
    store.container.chunks.memory.forget(path)
