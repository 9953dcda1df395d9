"""The image of OME-Zarr that gets levels: how they are made, found, listed and removed."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, override

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.container.options import require
from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import MisfitError, mapping
from n5zarr.conventions.ngff import transforms_of
from n5zarr.errors import ErrorsAt, N5UnsupportedError, N5Warning, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c
from n5zarr.format.path import groups_above, join
from n5zarr.format.raw_json import strict
from n5zarr.images.ome_06 import intrinsic_of, is_06, level_transforms
from n5zarr.images.ome_documents import (
    as_05,
    image_in,
    level_paths,
    ome_part,
    paths_in,
    read_levels,
)
from n5zarr.images.ome_rules import check_written
from n5zarr.images.source import ArraySource
from n5zarr.images.zarr_documents import warn_of_text
from n5zarr.ome_zarr.location import OmeLocation, find_ome
from n5zarr.storage.place import Place
from n5zarr.storage.requests import Remove, RemoveTree, Update, put_each, read_each, request_each
from n5zarr.tools.convert.from_zarr import zarr_array
from n5zarr.tools.convert.source_files import described_source
from n5zarr.tools.convert.target import Layout, ZarrDestination, ZarrTarget, put_missing
from n5zarr.tools.jobs.incomplete import INCOMPLETE_JSON, read_incomplete
from n5zarr.tools.pyramid.image import Level, PyramidImage, Wanted
from n5zarr.tools.pyramid.methods import Method, choose_method
from n5zarr.tools.pyramid.model import ChosenLevel

_DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", INCOMPLETE_JSON)
_CHUNK = re.compile(r"c|(c[/.])?\d+([/.]\d+)*")


type DocumentEdit = Callable[[Mapping[str, JSON]], Mapping[str, JSON]]


@dataclass(frozen=True, kw_only=True)
class OmeImage(PyramidImage):
    """An image of OME-Zarr.

    Parameters
    ----------
    location : OmeLocation
        The hierarchy, and the path of the group of the image.
    attributes : mapping
        Attributes of the group.
    paths : tuple of str
        The paths of its levels below the group, the finest first.
    array : zarr.Array
        The finest level.
    like : ArraySource
        The same, for the documents of others.
    """

    location: OmeLocation
    attributes: Mapping[str, JSON]
    paths: tuple[str, ...]
    array: AnyArray
    like: ArraySource

    @override
    def method(self, given: str) -> Method:
        is_labels = ome_part(self.attributes, "image-label") is not None
        return choose_method("mode" if is_labels and given == "auto" else given, self.dtype)

    # ----------------------------------------------------------------------------- arrays

    @override
    def level(self, name: str, chosen: ChosenLevel, wanted: Wanted) -> Level:
        shards = None if wanted.is_chunked else self.array.shards
        layout = Layout(wanted.chunks, shards, wanted.compression)
        made = ZarrDestination(self.storage, self.full(name), zarr_format=self.location.zarr_format)
        values = np.broadcast_to(np.zeros((), self.like.native_dtype), chosen.shape)
        target = made.create_array("", replace(self.like, values=values), layout)
        return Level(
            made.path,
            target.unit,
            made.documents(),
            shape=chosen.shape,
            factors=chosen.factors,
            total=chosen.total,
        )

    @override
    def target(self, level: Level, mode: Literal["r", "r+"]) -> ZarrTarget:
        array = self.array
        if level.documents:
            name = "zarr.json" if self.location.zarr_format == 3 else ".zarray"
            metadata = json.loads(level.documents[join(level.path, name)])
            where = StorePath(self.store, level.path)
            array = zarr.Array(zarr.AsyncArray(metadata=metadata, store_path=where))
        return ZarrTarget(level.path, array, self.storage)

    @override
    def n_bytes_stored(self, level: Level) -> int:
        n_documents = sum(map(len, level.own_documents.values()))
        return sync(self.store.getsize_prefix(level.path)) - n_documents

    # ------------------------------------------------------------------ levels that are there

    @override
    def existing(self, names: Sequence[str]) -> list[str]:
        listed = list(self.paths[1:])
        beside = [name for name in names if name not in listed]
        return listed + [n for n in beside if not sync(self.store.is_empty(self.full(n)))]

    @override
    def check_removable(self, names: Sequence[str]) -> None:
        super().check_removable(names)
        images = ome_part(self.attributes, "multiscales")
        others = [mapping(each) for each in images[1:]] if isinstance(images, list) else []
        listed = {path_of(entry) for other in others for entry in entries_in(other)}
        for name in names:
            require(
                self._is_removable(name),
                f"expected a free name, got {name}, which is no level; move it, or give the first "
                "level another name",
            )
            require(
                name not in listed,
                f"{name}: expected a level of the first image in multiscales alone, got one of "
                "another image, too",
            )

    def _is_removable(self, name: str) -> bool:
        """Whether there is a level, nothing, or what is left of a level that was being removed."""
        path = self.full(name)
        if read_incomplete(self.store, path) is not None:
            return True
        try:
            self.location.array(path)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return sync(_holds_only_chunks(self.store, path))
        return True

    @override
    def remove(self, names: Sequence[str]) -> None:
        paths = [self.full(name) for name in names]
        self._change(lambda found: {**found, "datasets": entries_in(found)[:1]})
        keys = [join(path, name) for path in paths for name in _DOCUMENTS]
        self.storage.run(request_each(map(Remove, keys)))
        self.storage.run(request_each(map(RemoveTree, paths)))

    # --------------------------------------------------------------------------- metadata

    @override
    def finish(self, levels: Sequence[Level], wanted: Wanted) -> None:
        for level in reversed(levels):
            own = level.own_documents
            self.storage.run(put_each(own.items()))
            above = {key: data for key, data in level.documents.items() if key not in own}
            put_missing(self.storage, above)
        self._list(levels, wanted.method)
        consolidate_again(self.location)

    @override
    def warn(self, levels: Sequence[Level], method: Method) -> None:
        for label, n_levels in self._levels_of_labels().items():
            if n_levels != len(levels) + 1:
                warnings.warn(
                    f"{self.storage}: {self.full(label)}: OME-Zarr expects labels to have the "
                    f"{len(levels) + 1} levels of their image, got {n_levels}; n5zarr pyramid "
                    "writes them, too",
                    N5Warning,
                    stacklevel=4,
                )

    def _list(self, levels: Sequence[Level], method: Method) -> None:
        """List the levels in ``multiscales``, and keep all other metadata of the group."""
        entries: list[JSON] = []
        image = image_in(self.attributes) or {}
        system = str(intrinsic_of(image)["name"]) if is_06(image) else None
        for level in levels:
            axes = self.axes_at(level.total, method)
            name = self.name(level)
            steps = transforms_of((axis.scale, axis.translation) for axis in axes)
            steps = steps if system is None else level_transforms(name, steps, system)
            entries.append({"path": name, "coordinateTransformations": steps})
        self._change(
            lambda found: {**found, "datasets": [*entries_in(found)[:1], *entries], "type": method}
        )

    def _change(self, change: DocumentEdit) -> None:
        """Change the first image of ``multiscales`` in the document of the group."""

        def changed(old: bytes | None) -> bytes:
            document = json.loads(old or b"{}")
            warn_of_text(str(self.storage), {self.group: document}, {})
            holder = document["attributes"] if self.location.zarr_format == 3 else document
            holder = holder["ome"] if "multiscales" in mapping(holder.get("ome")) else holder
            first, *others = holder["multiscales"]
            holder["multiscales"] = [change(first), *others]
            return json.dumps(strict(document), indent=2).encode()

        key = join(self.group, _document(self.location))
        self.storage.run(request_each([Update(key, changed)]))

    def _levels_of_labels(self) -> dict[str, int]:
        """Return the number of levels of each of its label images, by path below its group."""
        listed = paths_in(ome_part(_attributes(self.location, self.full("labels")), "labels"))
        found = {}
        for path in (join("labels", label) for label in listed):
            image = image_in(_attributes(self.location, self.full(path)))
            if image is not None:
                found[path] = len(entries_in(image))
        return found


def find_image(place: Place, path: str, convention: str) -> OmeImage | None:
    """Read the image of OME-Zarr at a location: its group, or its finest level; None of others.

    Raises
    ------
    N5UnrepresentableError
        There is no image, or its metadata is wrong (``kind="option"``).
    N5UnsupportedError
        Its elements are no numbers (``kind="data-type"``), or nothing can be written
        (``kind="read-only"``).
    """
    location = find_ome(place, path, read_only=False)
    if location is None:
        return None
    storage = location.storage
    with ErrorsAt(join(str(storage), location.path)):
        require(
            convention in ("auto", "ngff"),
            f"convention: expected auto with OME-Zarr, got {convention!r}",
        )
        if storage.read_only or not storage.store.supports_deletes:
            raise N5UnsupportedError("expected a store that can write and delete", kind="read-only")
        try:
            return _read(location)
        except MisfitError as err:
            raise option_error(str(err)) from err


def _read(location: OmeLocation) -> OmeImage:
    attributes, path = _group_of(location)
    image = image_in(attributes)
    if image is None:
        raise option_error("expected an image of OME-Zarr, or its first level, got none")
    location, paths = location._replace(path=path), level_paths(image)
    require(paths, "multiscales: datasets: expected a level, got none")
    try:
        first = location.array(join(path, paths[0]))
    except FileNotFoundError as err:
        raise option_error(
            f"expected the array {paths[0]!r}, which multiscales lists, got none"
        ) from err
    except (ValueError, TypeError, KeyError) as err:
        raise option_error(f"{paths[0]}: expected an array of Zarr, got {err}") from err
    image = as_05(image, first.ndim)
    own = {key: value for key, value in image.items() if key != "coordinateTransformations"}
    levels = read_levels(own, {paths[0]: first.shape})
    check_written(path or "/", {**own, "datasets": entries_in(own)[:1]}, {})
    require(levels, "multiscales: axes: expected those of the first level, got none")
    if first.dtype.kind not in "biuf" or not all(first.shape):
        raise N5UnsupportedError(
            f"expected numbers with elements, got {first.dtype} of shape {first.shape}",
            kind="data-type",
        )
    like = replace(zarr_array(first), encoded=first, attributes={})
    return OmeImage(
        storage=location.storage,
        group=path,
        source=Level(join(path, paths[0]), tuple(first.shards or first.chunks), shape=first.shape),
        dtype=np.dtype(first.dtype),
        chunks=tuple(first.chunks),
        axes=to_c(levels[0].axes),
        convention="ome-zarr",
        documents=(join(path, "zarr.json"), join(path, ".zattrs")),
        described=described_source(like),
        known_method=mapping(image_in(attributes)).get("type"),
        location=location,
        attributes=attributes,
        paths=tuple(paths),
        array=first,
        like=like,
    )


def _group_of(location: OmeLocation) -> tuple[Mapping[str, JSON], str]:
    """Return attributes and path of the group of an image; its first level may be given."""
    for path in (location.path, *reversed(groups_above(location.path))):
        attributes = _attributes(location, path)
        image = image_in(attributes)
        inner = location.path.removeprefix(path).lstrip("/")
        if image is not None and inner in ("", *level_paths(image)[:1]):
            return attributes, path
    return {}, location.path


def _attributes(location: OmeLocation, path: str) -> Mapping[str, JSON]:
    (data,) = location.storage.run(read_each([join(path, _document(location))]))
    try:
        document = mapping(json.loads(data or b"{}"))
    except ValueError:
        return {}
    return mapping(document.get("attributes")) if location.zarr_format == 3 else document


def _document(location: OmeLocation) -> str:
    return "zarr.json" if location.zarr_format == 3 else ".zattrs"


async def _holds_only_chunks(store: Store, path: str) -> bool:
    """Whether no key below a path is that of a document or of a foreign file."""
    async for key in store.list_prefix(f"{path}/"):
        if not _CHUNK.fullmatch(key.removeprefix(f"{path}/")):
            return False
    return True


def consolidate_again(location: OmeLocation) -> None:
    """Write consolidated metadata again where the group, or one above it, has some."""
    store = location.storage.store.with_read_only(read_only=False)
    for path in (location.path, *reversed(groups_above(location.path))):
        name = "zarr.json" if location.zarr_format == 3 else ".zmetadata"
        data = sync(store.get(join(path, name), cpu.buffer_prototype))
        is_old = location.zarr_format == 2 and data is not None
        if data is not None and location.zarr_format == 3:
            is_old = mapping(json.loads(data.to_bytes())).get("consolidated_metadata") is not None
        if is_old:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that v3 does not specify it
                zarr.consolidate_metadata(store, path=path, zarr_format=location.zarr_format)
