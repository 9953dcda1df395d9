"""``N5FSStore``: :class:`~n5zarr.N5Store` with the name and arguments of zarr-python 2."""

from __future__ import annotations

from typing import Any, Literal

from n5zarr.container.options import check_option, require
from n5zarr.storage.place import Location
from n5zarr.store.n5_store import N5Store


class N5FSStore(N5Store):
    """An N5 container as a Zarr store, with the arguments of zarr-python 2.

    For code that was written for it; new code uses :class:`~n5zarr.N5Store`.

    Parameters
    ----------
    url : path, URL, zarr store or mapping of fsspec's
        The container.
    normalize_keys : bool, optional
        Only false: N5's names are case-sensitive.
    mode : {"w", "r", "r+", "a", "w-"}, optional
        ``"r"`` refuses to write. The other modes remove nothing, as in zarr-python 2.
    dimension_separator : {".", "/"}, optional
        Without effect: blocks are in directories, one for each axis.
    fs : fsspec.AbstractFileSystem, optional
        The file system of ``url``; ``url`` is then a path in it.
    check, create, auto_mkdir : bool, optional
        Without effect: the first write creates a container.
    **options : optional
        Other options of :class:`~n5zarr.N5Store`, and of the file system of a URL.

    Raises
    ------
    N5UnrepresentableError
        An option has an invalid value (``kind="option"``).

    Examples
    --------
    >>> import zarr, n5zarr
    >>> store = N5FSStore(n5zarr.sample_path(), mode="r")
    >>> zarr.open(store, mode="r")["em/s1"].shape
    (20, 48, 64)
    """

    def __init__(  # noqa: PLR0913 - as zarr-python 2
        self,
        url: Location,
        normalize_keys: bool = False,  # noqa: FBT001, FBT002
        *,
        mode: Literal["r", "r+", "a", "w", "w-"] = "w",
        dimension_separator: Literal[".", "/"] | None = None,
        fs: object = None,
        check: bool = False,
        create: bool = False,
        auto_mkdir: bool = True,
        **options: Any,  # noqa: ANN401 - of two callees
    ) -> None:
        require(
            not isinstance(normalize_keys, str),
            f"expected the mode by its name, mode={normalize_keys!r}: as in zarr-python 2, the "
            "second argument is normalize_keys",
        )
        check_option("normalize_keys", normalize_keys, (False,))
        check_option("dimension_separator", dimension_separator, (None, ".", "/"))
        super().__init__(url, mode=mode, fs=fs, **options)
