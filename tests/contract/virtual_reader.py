"""Read references as a program without n5zarr does, and print what they read to.

Started by tests as a process of its own: importing n5zarr is an error here. Takes JSON on standard
input: a list of references, each with the options of its reader; prints JSON, for each a mapping of
the paths of arrays to shape, type, SHA-256, dimensions and units of their elements.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Blocked:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "n5zarr":
            message = f"{name} may not be imported here"
            raise ImportError(message)


sys.meta_path.insert(0, _Blocked())  # type: ignore[arg-type] # typeshed wants all methods


def opened(reference: Mapping[str, Any]) -> Any:
    """Open the store that a reader of plain Zarr would open."""
    path = reference["path"]
    if path.endswith(".icechunk"):
        import icechunk  # noqa: PLC0415 - takes a second

        s3 = reference.get("s3")
        if s3:
            storage = icechunk.s3_storage(**reference["place"], **s3)
            keys = {name: s3[name] for name in ("access_key_id", "secret_access_key")}
            credentials: Any = icechunk.s3_credentials(**keys)
        else:
            storage = icechunk.local_filesystem_storage(path)
            credentials = None
        container = reference["container"] + "/"
        allowed = icechunk.containers_credentials({container: credentials})
        repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed)
        return repository.readonly_session("main").store
    from zarr.storage import FsspecStore  # noqa: PLC0415 - takes a second

    protocol = reference["container"].partition("://")[0]
    options = {"fo": path, "asynchronous": True, "remote_protocol": protocol}
    options |= reference.get("options", {})
    return FsspecStore.from_url("reference://", storage_options=options, read_only=True)


def contents(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Read all arrays."""
    import numpy as np  # noqa: PLC0415 - as above
    import zarr  # noqa: PLC0415

    if reference.get("rectilinear"):
        zarr.config.set({"array.rectilinear_chunks": True})
    found: dict[str, Any] = {}
    for name, array in zarr.open_group(opened(reference), mode="r").members(max_depth=None):
        if not isinstance(array, zarr.Array):
            continue
        values = np.asarray(array[...])
        if values.dtype.kind in "OTU":
            found[name] = {"values": values.ravel().tolist()}
            continue
        big = np.ascontiguousarray(values, values.dtype.newbyteorder(">"))
        attributes = array.metadata.to_dict()
        dims = attributes.get("dimension_names") or array.attrs.get("_ARRAY_DIMENSIONS")
        found[name] = {
            "shape": list(values.shape),
            "dtype": values.dtype.newbyteorder("=").name,
            "sha256": hashlib.sha256(big.tobytes()).hexdigest(),
            "dims": dims,
            "units": array.attrs.get("units"),
        }
    return found


def main() -> None:
    try:
        import n5zarr  # noqa: F401, PLC0415
    except ImportError:
        pass
    else:
        sys.exit("n5zarr can be imported")
    print(json.dumps([contents(reference) for reference in json.load(sys.stdin)]))  # noqa: T201


if __name__ == "__main__":
    main()
