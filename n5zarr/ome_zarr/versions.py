"""Give the groups of OME-Zarr 0.1 to 0.6 the metadata of another version.

Arrays stay as they are, with the names of the axes. Members that n5zarr does not know stay, too.
Transforms of a whole image become a part of those of its levels. Lists of levels, images, labels,
wells and fields lose what is not in the source, such as what the user has not selected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from n5zarr.container.options import require
from n5zarr.conventions.axis_names import XARRAY_KEY
from n5zarr.conventions.levels import entries_in
from n5zarr.conventions.model import MisfitError, items_of, mapping
from n5zarr.conventions.ngff import transforms_of
from n5zarr.errors import ErrorsAt, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c
from n5zarr.format.path import join
from n5zarr.images.display import is_label
from n5zarr.images.ome import METADATA_XML, OmeVersion, ome_attributes, series_metadata
from n5zarr.images.ome_06 import REGISTRATION, is_registration
from n5zarr.images.ome_documents import as_05, image_in, level_paths, paths_in, read_levels
from n5zarr.images.ome_rules import check_written
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.ome_zarr.scene import in_scenes
from n5zarr.storage.requests import read_key

_TRANSFORMS = "coordinateTransformations"
_LAYOUT = "bioformats2raw.layout"
# parts of the metadata, which up to 0.4 are attributes, and their types
_OF_IMAGE = {"multiscales": list, "omero": Mapping, "image-label": Mapping}
_PARTS = _OF_IMAGE | {_LAYOUT: int, "plate": Mapping, "well": Mapping, "labels": list}


def in_version(
    tree: SourceTree, version: OmeVersion, labels: Sequence[str] = ()
) -> SourceTree | None:
    """Return OME-Zarr with the metadata of a version; None if the source is anything else.

    Parameters
    ----------
    tree : SourceTree
        Arrays and groups of Zarr.
    version : {"0.5", "0.4", "0.6"}
        The version.
    labels : sequence of str, optional
        Patterns of paths of images that are labels, beside those marked as labels.

    Raises
    ------
    N5UnrepresentableError
        ``multiscales`` does not fit the arrays, or has other transforms than scales and
        translations, or no image has levels (``kind="option"``).
    """
    if not any(image_in(attributes) is not None for attributes in tree.groups.values()):
        return None
    with ErrorsAt(tree.name):
        return _Rewriting(in_scenes(tree), version, labels).tree()


@dataclass
class _Rewriting:
    """The groups and arrays that are written, as far as they are known."""

    source: SourceTree
    version: OmeVersion
    labels: Sequence[str]
    arrays: dict[str, ArraySource] = field(init=False)
    images: list[str] = field(default_factory=list, init=False)  # paths

    def __post_init__(self) -> None:
        self.arrays = dict(self.source.arrays)

    def tree(self) -> SourceTree:
        """Return all groups and arrays in the new version."""
        groups = {path: self._group(path, own) for path, own in self.source.groups.items()}
        require(bool(self.images), "expected an image with levels of OME-Zarr, got none")
        _, top = _divided("", self.source.groups.get("", {}))
        if _LAYOUT in top and "OME" not in groups:  # which is not selected
            series = [path for path in self.images if "labels" not in path.split("/")]
            groups["OME"] = ome_attributes(self.version, series_metadata(series)["OME"])
        groups = dict(sorted(groups.items()))
        return replace(self.source, arrays=self.arrays, groups=groups, files=self._files())

    def _files(self) -> dict[str, bytes]:
        """Read the OME-XML of a collection, which describes all its images in their order."""
        source = self.source
        if source.storage is None or "OME" not in source.groups:
            return {}
        _, lists = _divided("OME", source.groups["OME"])
        if self._only_there("OME", lists) != lists:
            return {}
        inner = source.name.removeprefix(str(source.storage)).strip("/")
        data = source.storage.run(read_key(join(inner, METADATA_XML)))
        return {} if data is None else {METADATA_XML: bytes(data)}

    def _group(self, path: str, attributes: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the attributes of a group in the new version."""
        others, metadata = _divided(path, attributes)
        if image_in(attributes) is not None:
            others.pop(XARRAY_KEY, None)
            given = items_of(metadata.pop("multiscales"))
            images = [new for each in given if (new := self._image(path, mapping(each), others))]
            if images:
                self.images.append(path)
                metadata = {"multiscales": [*images], **metadata}
                first = self.arrays[join(path, str(mapping(entries_in(images[0])[0])["path"]))]
                if self.labels and is_label(path, first.native_dtype, [], self.labels):
                    metadata.setdefault("image-label", {})
            else:  # no level is selected
                metadata = {k: v for k, v in metadata.items() if k not in _OF_IMAGE}
        if not metadata:
            return others
        return {**others, **ome_attributes(self.version, self._only_there(path, metadata))}

    def _image(
        self, path: str, image: Mapping[str, JSON], others: dict[str, JSON]
    ) -> dict[str, JSON] | None:
        """Return an image of ``multiscales`` as in 0.5, or None if none of its levels is there.

        A registration moves to or from the other attributes of the group, which are changed.
        """
        try:
            full = {below: join(path, below) for below in level_paths(image)}
            shapes = {b: self.arrays[f].shape for b, f in full.items() if f in self.arrays}
            levels = read_levels(image, shapes)
            if not levels:
                return None
            new = as_05(image, len(next(iter(shapes.values()))))
        except MisfitError as err:
            raise option_error(f"{path or '/'}: {err}") from err
        entries = [mapping(entry) for entry in entries_in(new)]
        for key in (_TRANSFORMS, "version", "datasets"):
            new.pop(key, None)
        axes = to_c(next(iter(levels.values())).axes)
        new["axes"] = [
            {"name": own.name, "type": own.type} if isinstance(given, str) else given
            for given, own in zip(items_of(new["axes"]), axes, strict=True)
        ]
        names = [axis.name for axis in axes]
        if REGISTRATION in new:
            others[REGISTRATION] = new.pop(REGISTRATION)
        if self.version == "0.6" and is_registration(others.get(REGISTRATION), names):
            new[REGISTRATION] = others.pop(REGISTRATION)  # which it expresses
        new["datasets"] = [
            {
                **entries[i],
                "path": level.path,
                _TRANSFORMS: transforms_of((a.scale, a.translation) for a in to_c(level.axes)),
            }
            for i, level in levels.items()
        ]
        check_written(path or "/", new, {below: self.arrays[full[below]] for below in shapes})
        for level in levels.values():
            where = join(path, level.path)
            self.arrays[where] = replace(self.arrays[where], dimension_names=tuple(names))
        return new

    def _only_there(self, path: str, metadata: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the metadata of a group with lists of those nodes alone that are there."""
        found = dict(metadata)
        for key, member in (("labels", ""), ("series", ""), ("plate", "wells"), ("well", "images")):
            part = mapping(metadata.get(key))
            listed = part.get(member) if member else metadata.get(key)
            if not isinstance(listed, list):
                continue
            group = path.rpartition("/")[0] if key == "series" else path
            kept: list[JSON] = []
            for entry in listed:
                named = paths_in([entry])
                if named and join(group, named[0]) in self.source.groups:
                    kept.append(_well(entry, named[0], part) if key == "plate" else entry)
            found[key] = {**part, member: kept} if member else kept
        return found


def _divided(path: str, attributes: Mapping[str, JSON]) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Divide the attributes of a group into others and the metadata of OME-Zarr, any version."""
    ome = attributes.get("ome")
    if isinstance(ome, Mapping):
        others = {key: value for key, value in attributes.items() if key != "ome"}
        return others, {key: value for key, value in ome.items() if key != "version"}
    types = dict(_PARTS)
    if path == "OME":
        types["series"] = list
    if image_in(attributes) is None:  # COSEM's `multiscales`, for example
        types = {key: kind for key, kind in types.items() if key not in _OF_IMAGE}
    own = {k: v for k, v in attributes.items() if k in types and isinstance(v, types[k])}
    return {key: value for key, value in attributes.items() if key not in own}, own


def _well(entry: JSON, path: str, plate: Mapping[str, JSON]) -> JSON:
    """Return a well with its indices, which 0.4 and later require."""
    indices: dict[str, JSON] = {}
    for key, name in zip(("row", "column"), path.split("/"), strict=False):
        names = [mapping(each).get("name") for each in items_of(plate.get(f"{key}s"))]
        if name in names:
            indices[f"{key}Index"] = names.index(name)
    return {**indices, **mapping(entry)}
