"""``n5zarr.get_attribute`` and its siblings: attributes of groups and datasets, by Java's paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from n5zarr.container.nodes import read_document
from n5zarr.errors import ErrorsAt, option_error
from n5zarr.format.attribute_path import AttributePath, insert, lookup, parse_attribute_path, remove
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    ZARR_KEY,
    GroupAttributes,
    dataset_keys,
    is_dataset,
    own_keys,
)
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import from_numpy
from n5zarr.format.version import VERSION_KEY
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import existing_node, not_found
from n5zarr.zarr_view.record import Record, restore_attributes


@asking_once()
def get_attribute(
    location: Location,
    path: str = "",
    key: str = "",
    *,
    default: JSON = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> JSON:
    r"""Read an attribute of a group or dataset, one of N5's own keys, or all of them.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``location``.
    key : str, optional
        Path of the attribute as in Java: ``"a/b[2]"`` is an item of a list in a member of ``a``;
        ``\/`` and ``\[`` are these characters. By default all attributes, in an object.
    default : JSON, optional
        The result if the attribute does not exist.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    JSON
        The value. Values that N5 cannot hold, such as NaN, are as they were written through Zarr.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5Error
        The document of the node is not JSON (``kind="json"``).

    Examples
    --------
    >>> import n5zarr
    >>> n5zarr.get_attribute(n5zarr.sample_path(), "em/s0", "transform/scale[1]")
    8.0
    """
    place = place_of(location, storage_options, backend)
    store, node = open_container(place, path, writes=False)
    with ErrorsAt(f"{store}: {join(node, ATTRIBUTES_JSON)}"):
        document = store.run(read_document(node))
        restored = _restored(document or {}, is_root=not node)
    if document is None and store.node(node) is None:
        raise not_found(store, node)
    return lookup(restored, parse_attribute_path(key), default)


def set_attribute(
    location: Location,
    path: str,
    key: str,
    value: JSON,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> None:
    """Set an attribute of a group or dataset; all others keep their spelling.

    This is one change under the lock of the document. As in Java, missing objects and lists on the
    path are created, and values of another kind are replaced; a list that is too short is filled,
    with 0 before a number and with null before anything else.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str
        Node below ``location``; ``""`` for the location itself.
    key : str
        Path of the attribute, as of :func:`get_attribute`; ``""`` to replace all attributes.
    value : JSON
        The value; numbers and arrays of numpy become those of JSON.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnrepresentableError
        The key belongs to N5, such as ``dimensions`` of a dataset, JSON cannot hold the value, or
        the attributes would not be an object (``kind="option"``); nothing is written.
    N5UnsupportedError
        The container can only be read.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5")
    >>> array = n5zarr.create_array(where, path="a", shape=(5, 7), dtype="uint16")
    >>> n5zarr.set_attribute(where, "a", "contrast/limits[1]", 255)
    >>> n5zarr.get_attribute(where, "a", "contrast")
    {'limits': [0, 255]}
    """
    place = place_of(location, storage_options, backend)
    plain = from_numpy({key: value})[key]
    _update(place, path, key, lambda users, tokens: insert(users, tokens, plain))


def remove_attribute(
    location: Location,
    path: str,
    key: str,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> bool:
    """Remove an attribute of a group or dataset; later items of a list move up.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str
        Node below ``location``; ``""`` for the location itself.
    key : str
        Path of the attribute, as of :func:`get_attribute`; ``""`` to remove all attributes.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    bool
        Whether there was such an attribute.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnrepresentableError
        The key belongs to N5 (``kind="option"``); nothing is written.
    N5UnsupportedError
        The container can only be read.
    """
    place = place_of(location, storage_options, backend)
    missing = object()
    was_there: list[bool] = []

    def without(users: Mapping[str, JSON], tokens: AttributePath) -> JSON:
        # the last call counts, if other programs have written meanwhile
        was_there[:] = [lookup(dict(users), tokens, missing) is not missing]  # type: ignore[arg-type]
        if not was_there[0]:
            return dict(users)
        return remove(dict(users), tokens) if tokens else {}

    _update(place, path, key, without)
    return was_there[0]


def _restored(document: JSON, *, is_root: bool) -> JSON:
    """Return a document with its attributes as they were written, without n5zarr's record."""
    if not isinstance(document, dict):
        return document
    own = own_keys(document, is_root=is_root)
    users = {key: value for key, value in document.items() if key not in own}
    restored = restore_attributes(users, Record.from_json(document.get(ZARR_KEY)))
    kept = {key: value for key, value in document.items() if key in own and key != ZARR_KEY}
    in_order = {key: kept.get(key, restored.get(key)) for key in document if key != ZARR_KEY}
    return {**in_order, **restored, **kept}


def _update(
    place: Place,
    path: str,
    key: str,
    change: Callable[[Mapping[str, JSON], AttributePath], JSON],
) -> None:
    """Change the users' attributes of a node, at a path outside N5's own keys."""
    store, node = open_container(place, path, writes=True)
    found = existing_node(store, node)
    is_group = isinstance(found, GroupAttributes)
    tokens = parse_attribute_path(key)

    def changed(users: Mapping[str, JSON]) -> Mapping[str, JSON]:
        after = change(users, tokens)
        if not isinstance(after, dict):
            raise option_error(
                f"attribute {key!r}: expected the attributes to stay an object with names"
            )
        touched = {k for k in {*users, *after} if k not in users or k not in after}
        touched |= {str(token) for token in tokens[:1]}
        _check_users(touched, after, is_group=is_group, is_root=not node)
        return after

    store.run(store.container.update_attributes(node, changed, is_group=is_group))


def _check_users(
    touched: set[str], after: Mapping[str, JSON], *, is_group: bool, is_root: bool
) -> None:
    """Raise if an attribute to set or remove is one of N5's own keys."""
    reasons = {ZARR_KEY: "it holds n5zarr's record; write it through Zarr"}
    if is_root or not is_group:
        reasons[VERSION_KEY] = "it is the version of the container, which programs check"
    if not is_group:
        said = "readers need it to decode blocks; {} instead"
        reasons |= dict.fromkeys(
            ("blockSize", "dataType", "compression", "compressionType", "codecs"),
            said.format("copy the dataset with other ones"),
        )
        reasons["dimensions"] = said.format("resize the array")
    elif is_dataset(after):
        why = f"with {', '.join(dataset_keys(after))} the group would be a dataset"
        reasons |= dict.fromkeys(dataset_keys(after), why)
    for key in sorted(touched & reasons.keys()):
        raise option_error(
            f"attribute {key!r}: expected one that is not N5's own, as {reasons[key]}"
        )
