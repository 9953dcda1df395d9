"""Write coarser levels of an image of OME-Zarr, beside its first level, and list them."""

from __future__ import annotations

import math
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import boxes, n_boxes
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.codecs.compress import codec_of
from n5zarr.container.options import check_compression, require
from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import centre_shifts, mapping
from n5zarr.conventions.ome_draft import intrinsic_of, is_06, level_transforms
from n5zarr.conventions.ome_zarr import image_in
from n5zarr.errors import ErrorsAt, N5Warning
from n5zarr.format.path import join
from n5zarr.storage.requests import Remove, RemoveTree, request_each
from n5zarr.tools.convert.from_zarr import zarr_array
from n5zarr.tools.convert.layout import Layout
from n5zarr.tools.convert.source_files import SourceFiles, described_source
from n5zarr.tools.convert.target import ZarrDestination
from n5zarr.tools.jobs.incomplete import INCOMPLETE_JSON, SOURCE, read_incomplete
from n5zarr.tools.jobs.ledger import Piece, left_beside, remove_left, seal
from n5zarr.tools.jobs.nodes import check_no_links
from n5zarr.tools.jobs.parts import WHOLE
from n5zarr.tools.jobs.reading import for_reading
from n5zarr.tools.pyramid.choose import choose_levels
from n5zarr.tools.pyramid.methods import choose_method, downsample, halo
from n5zarr.tools.pyramid.model import Pyramid, PyramidLevel, PyramidOptions
from n5zarr.tools.pyramid.ome_image import (
    OmeImage,
    change_image,
    consolidate_again,
    find_image,
    is_removable,
    names_like,
    others_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zarr.types import AnyArray

    from n5zarr.arrays.boxes import Box
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.ome_place import OmeLocation
    from n5zarr.tools.convert.target import ZarrTarget
    from n5zarr.tools.jobs.parts import Owned
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.pyramid.choose import ChosenLevel
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["build_ome_pyramid"]

_LEAST = 2**24  # bytes of the finer level that a task reads, if chunks are small
_DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", INCOMPLETE_JSON)


def build_ome_pyramid(location: OmeLocation, options: PyramidOptions) -> Pyramid:
    """Write coarser levels of an image of OME-Zarr; see :func:`n5zarr.build_pyramid`."""
    image = find_image(location)
    run = options.run.checked([] if location.storage.is_shared else ["this store"])
    with ErrorsAt(str(image)):
        job = _plan(image, options, run.memory_of_worker(options.max_memory))
        removed = _check_free(job, options) if job.levels else ()
    is_written = bool(job.levels) and not options.dry_run
    resume = options.resume or not run.division.is_whole
    left: dict[str, list[str]] = {}
    if is_written:
        documents = [image.full(name) for name in ("zarr.json", ".zattrs")]
        left |= left_beside(image.location.storage, documents) if resume else {}
        _remove(image, removed)
        _write(job, run, resume=resume)
    if is_written and run.division.part is None:
        _list_levels(job)
        remove_left(image.location.storage, left)
    return Pyramid(
        container=str(location.storage),
        path=image.location.path,
        method=job.method,
        convention="ome-zarr",
        levels=tuple(
            _made(job, name, level, is_written=is_written and run.division.part is None)
            for name, level in zip(job.names, job.levels, strict=True)
        ),
        removed=removed,
    )


class _Job(NamedTuple):
    """What is written: the levels of an image, their paths, and how."""

    image: OmeImage
    levels: Sequence[ChosenLevel]
    names: Sequence[str]
    method: Method
    layout: Layout
    memory: int


def _plan(image: OmeImage, options: PyramidOptions, memory: int) -> _Job:
    first, packed = image.first, None
    require(
        options.convention in ("auto", "ngff"),
        f"convention: expected auto with OME-Zarr, got {options.convention!r}",
    )
    if options.compression is not None:
        packed = check_compression(options.compression)
        codec_of(packed).check_writable(packed)
    chunks = tuple(first.chunks if options.chunks is None else options.chunks)
    require(
        len(chunks) == first.ndim and min(chunks) >= 1,
        f"chunks: expected {first.ndim} numbers above 0, got {list(chunks)}",
    )
    levels = choose_levels(
        first.shape, chunks, image.voxel, factors=options.factors, n_levels=options.levels
    )
    given = "mode" if image.is_labels and options.method == "auto" else options.method
    return _Job(
        image=image,
        levels=levels,
        names=names_like(image.paths[0], len(levels)),
        method=choose_method(given, np.dtype(first.dtype)),
        layout=Layout(chunks, first.shards if options.chunks is None else None, packed),
        memory=memory,
    )


def _check_free(job: _Job, options: PyramidOptions) -> tuple[str, ...]:
    """Return the existing levels, which are removed; raise if they may not be."""
    image, store = job.image, job.image.location.storage.store
    listed = list(image.paths[1:])
    beside = [name for name in job.names if name not in listed]
    beside = [name for name in beside if not sync(store.is_empty(image.full(name)))]
    there = [*listed, *beside]
    is_interrupted = any(read_incomplete(store, image.full(name)) is not None for name in there)
    division = options.run.division
    require(
        division.part is None or not listed,
        f"expected levels whose parts are still written, got finished ones: {', '.join(listed)}; "
        "to write them again, remove them first",
    )
    if (options.resume and not options.overwrite) or not division.is_whole:
        others = ", ".join(name for name in listed if name not in job.names)
        message = f"expected the levels that this call would write, got {others}"
        require(not others, f"{message}; overwrite=True (--overwrite) removes them first")
        known = mapping(image_in(image.attributes)).get("type", job.method)
        message = f"expected the method of the run that wrote the levels, {known}, got {job.method}"
        require(not listed or known == job.method, message)
        return ()
    more, way = "", ""
    if is_interrupted:
        more, way = " of an interrupted run", "resume=True (--resume) continues it, "
    require(
        options.overwrite or not there,
        f"expected no levels beside {image.paths[0]}, got {', '.join(there)}{more}; {way}"
        "overwrite=True (--overwrite) removes them first",
    )
    listed_by_others = {
        path_of(entry) for other in others_in(image.attributes) for entry in entries_in(other)
    }
    for name in there:
        require(
            is_removable(image, name),
            f"expected a free name, got {name}, which is no level; move it, or give the first "
            "level another name",
        )
        require(
            name not in listed_by_others,
            f"{name}: expected a level of the first image in multiscales alone, got one of "
            "another image, too",
        )
    return tuple(there)


def _remove(image: OmeImage, names: Sequence[str]) -> None:
    """Remove levels: first from the list, then their documents, so that none reads as wrong."""
    if not names:
        return
    storage = image.location.storage
    paths = [image.full(name) for name in names]
    check_no_links(storage, paths)
    change_image(image, lambda found: {**found, "datasets": entries_in(found)[:1]})
    storage.run(request_each(Remove(join(p, file)) for p in paths for file in _DOCUMENTS))
    storage.run(request_each(map(RemoveTree, paths)))


# ---------------------------------------------------------------------------- writing


class _Region(NamedTuple):
    """A region of whole chunks of a level, to be computed."""

    box: Box
    n_bytes: int
    keys: Sequence[str]


@dataclass(frozen=True)
class _Work:
    """A function of a region, which computes and writes it; can be pickled."""

    source: AnyArray
    target: ZarrTarget
    factors: tuple[int, ...]
    method: Method
    memory: int

    def __call__(self, region: _Region) -> bytes:
        found = b"".join(map(seal, self.pieces([region])))
        values = np.empty([s.stop - s.start for s in region.box], self.source.dtype)
        for part in boxes(values.shape, _part(values.shape, self.factors, self._n_elements)):
            inner = [
                slice(p.start + s.start, p.stop + s.start)
                for p, s in zip(part, region.box, strict=True)
            ]
            values[part] = self._computed(inner)
        self.target.write(region.box, values)
        return found

    def pieces(self, regions: Iterable[_Region]) -> Iterator[Piece]:
        """Yield what regions make, if the finer level is in local files."""
        files = SourceFiles.of(zarr_array(self.source))
        for region in regions if files is not None else ():
            read = [wider for _, _, wider in self._wanted(region.box)]
            yield Piece(str(region.box), region.keys, [] if files is None else files.behind(read))

    def _wanted(self, box: Sequence[slice]) -> Iterator[tuple[int, int, slice]]:
        """Yield start, stop and what is read of the finer level, along each axis."""
        reach = halo(self.method, self.factors)
        for part, factor, r, n in zip(box, self.factors, reach, self.source.shape, strict=True):
            start, stop = part.start * factor, min(part.stop * factor, n)
            yield start, stop, slice(max(0, start - r), min(n, stop + r))

    @property
    def _n_elements(self) -> int:
        return max(1, self.memory // (4 * self.source.dtype.itemsize))

    def _computed(self, box: Sequence[slice]) -> np.ndarray:
        """Compute a part of the level."""
        wanted, around = [], []
        for start, stop, wider in self._wanted(box):
            wanted.append(wider)
            around.append((start - wider.start, wider.stop - stop))
        elements = read_on_host(self.source, tuple(wanted))
        return downsample(elements, self.factors, self.method, around)


def _part(shape: Sequence[int], factors: Sequence[int], most: int) -> list[int]:
    """Halve a region along its longest axes until its elements of the finer level fit."""
    part = list(shape)
    while math.prod(part) * math.prod(factors) > most and max(part) > 1:
        longest = part.index(max(part))
        part[longest] = -(-part[longest] // 2)
    return part


def _regions(target: ZarrTarget, factors: Sequence[int]) -> Iterator[_Region]:
    """Yield the regions of whole chunks, or shards."""
    shape, unit = target.array.shape, target.unit
    n_bytes = math.prod(factors) * target.array.dtype.itemsize
    step = list(unit)
    for axis in reversed(range(len(step))):
        while math.prod(step) * n_bytes < _LEAST and step[axis] < shape[axis]:
            step[axis] += unit[axis]
    for box in boxes(shape, step):
        grid = [range(s.start // u, -(-s.stop // u)) for s, u in zip(box, unit, strict=True)]
        keys = [target.key(position) for position in product(*grid)]
        yield _Region(box, math.prod(s.stop - s.start for s in box) * n_bytes, keys)


def _compute(work: _Work, owned: Owned, run: RunOptions, stage: str) -> None:
    """Compute a level, or a part of it, and keep what is made of an unchanged finer level."""
    target = work.target
    own = [r for r in _regions(target, work.factors) if owned.owns(r.keys[0])]
    owned = owned.unchanged(work.pieces(own), target.storage)
    wanted = (region for region in own if not owned.written.issuperset(region.keys))
    total = math.prod(work.source.shape) * target.array.dtype.itemsize
    for _, seals in run.each(work, wanted, stage, total):
        if owned.ledger is not None:
            owned.ledger.note(seals)


def _write(job: _Job, run: RunOptions, *, resume: bool) -> None:
    """Write all levels, each from the one before; all are incomplete until the last is written.

    Parts share the first level; the run that ends them writes the others.
    """
    image, storage = job.image, job.image.location.storage
    like = replace(zarr_array(image.first), encoded=image.first, attributes={})
    source = for_reading(image.first)
    with ExitStack() as writing:
        for name, level in zip(job.names, job.levels, strict=True):
            made = ZarrDestination(
                storage, image.full(name), zarr_format=image.location.zarr_format
            )
            values = np.broadcast_to(np.zeros((), like.native_dtype), level.shape)
            target = made.create_array("", replace(like, values=values), job.layout)
            work = _Work(source, target, level.factors, job.method, job.memory)
            source = target.readable
            is_first = name == job.names[0]
            division = run.division if is_first else WHOLE
            if made.check_free(overwrite=False, resume=resume):
                continue
            options: dict[str, JSON] = {
                "method": job.method,
                "factors": [*level.total],
                "chunks": [*target.unit],
                SOURCE: {str(image.first.store_path): described_source(like)},
            }
            owned = writing.enter_context(made.writing(options, resume=resume, division=division))
            if division.ends:
                pieces = work.pieces(_regions(target, level.factors))
                owned.check_made(pieces, made.store, made.path)
            else:
                _compute(work, owned, run, name)
            if division.part is not None:
                return


# ---------------------------------------------------------------------------- metadata


def _place(job: _Job, level: ChosenLevel) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return scale and translation of a level, C order."""
    scale = [axis.scale for axis in job.image.axes]
    shifts = centre_shifts(scale, [1] * len(scale) if job.method == "stride" else level.total)
    starts = zip((axis.translation for axis in job.image.axes), shifts, strict=True)
    return (
        tuple(s * f for s, f in zip(scale, level.total, strict=True)),
        tuple(start + shift for start, shift in starts),
    )


def _list_levels(job: _Job) -> None:
    """List the levels in ``multiscales``, and keep all other metadata of the group."""
    entries: list[JSON] = []
    image = image_in(job.image.attributes) or {}
    system = intrinsic_of(image) if is_06(image) else None
    for name, level in zip(job.names, job.levels, strict=True):
        scale, translation = _place(job, level)
        steps: list[JSON] = [{"type": "scale", "scale": [*scale]}]
        if any(translation):
            steps.append({"type": "translation", "translation": [*translation]})
        steps = steps if system is None else level_transforms(name, steps, system)
        entries.append({"path": name, "coordinateTransformations": steps})

    def listed(found: Mapping[str, JSON]) -> dict[str, JSON]:
        return {**found, "datasets": [*entries_in(found)[:1], *entries], "type": job.method}

    change_image(job.image, listed)
    consolidate_again(job.image.location)
    for label, n_levels in job.image.levels_of_labels().items():
        if n_levels != len(entries) + 1:
            warnings.warn(
                f"{join(str(job.image), label)}: OME-Zarr expects labels to have the "
                f"{len(entries) + 1} levels of their image, got {n_levels}; n5zarr pyramid writes "
                "them, too",
                N5Warning,
                stacklevel=4,
            )


def _made(job: _Job, name: str, level: ChosenLevel, *, is_written: bool) -> PyramidLevel:
    scale, translation = _place(job, level)
    image, chunks = job.image, job.layout.chunks or ()
    path, unit, n_stored, n_bytes = image.full(name), chunks, None, None
    if is_written:
        array = image.open(name)
        listed, unit = stored_chunks(array), array.shards or array.chunks
        n_stored = None if listed is None else sum(len(rows) for rows in listed.rows)
        n_bytes = image.n_bytes_stored(name)
    return PyramidLevel(
        path=path,
        shape=level.shape,
        chunks=chunks,
        factors=level.total,
        scale=scale,
        translation=translation,
        units=tuple(axis.unit for axis in image.axes),
        n_blocks=n_boxes(level.shape, unit),
        n_blocks_stored=n_stored,
        n_bytes=math.prod(level.shape) * image.first.dtype.itemsize,
        n_bytes_stored=n_bytes,
    )
