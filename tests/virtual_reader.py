"""Read references as a program without n5zarr does, and print the values.

Started by tests as a process of its own: importing n5zarr is an error here. Takes lines of JSON on
standard input: a list of references, each with the options of its reader; prints lines of JSON: for
each reference a mapping of the paths of arrays to shape, type and SHA-256 of their elements, or to
their axes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any


class _Blocked:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "n5zarr":
            message = f"{name} may not be imported here"
            raise ImportError(message)


def opened(reference: Mapping[str, Any]) -> Any:
    """Open the store that a reader of plain Zarr would open."""
    path = reference["path"]
    if path.endswith(".icechunk"):
        import icechunk  # noqa: PLC0415 - takes a second

        place, keys = reference.get("place"), reference.get("keys")
        local = icechunk.local_filesystem_storage
        storage = icechunk.s3_storage(**place) if place else local(path)
        access: Any = icechunk.credentials.LocalFileSystemAccess
        credentials = icechunk.s3_credentials(**keys) if keys else access
        allowed = icechunk.containers_credentials({reference["prefix"]: credentials})
        repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed)
        return repository.readonly_session("main").store
    from zarr.storage import FsspecStore  # noqa: PLC0415 - takes a second

    protocol = reference["prefix"].partition("://")[0]
    options = {"fo": path, "asynchronous": True, "remote_protocol": protocol}
    options |= reference.get("options", {})
    return FsspecStore.from_url("reference://", storage_options=options, read_only=True)


def contents(reference: Mapping[str, Any]) -> dict[str, Any]:
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
        found[name] = {
            "shape": list(values.shape),
            "dtype": values.dtype.newbyteorder("=").name,
            "sha256": hashlib.sha256(big.tobytes()).hexdigest(),
        }
    return found


def axes(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Open all groups with xarray; return first and second position and unit along each axis."""
    import xarray as xr  # noqa: PLC0415 - as above

    if reference["axes"] == "kerchunk":  # whose engine opens one group at a time
        keys = json.loads(Path(reference["path"]).read_text())["refs"]
        groups = sorted(f"/{key.removesuffix('.zgroup')}" for key in keys if ".zgroup" in key)
        how: Any = {"engine": "kerchunk", "storage_options": {"remote_protocol": "file"}}
        in_group = partial(xr.open_dataset, reference["path"], **how)
        nodes: Any = {name: in_group(open_dataset_options={"group": name}) for name in groups}
    else:
        tree = xr.open_datatree(opened(reference), engine="zarr", consolidated=False)
        nodes = {f"{node.path}/": node for node in tree.subtree}
    return {
        f"{path}{name}": {
            dim: [*node[dim].values[:2].tolist(), node[dim].attrs.get("units")]
            for dim in variable.dims
            if dim in node.coords
        }
        for path, node in nodes.items()
        for name, variable in node.data_vars.items()
    }


def main() -> None:
    try:
        import n5zarr  # noqa: F401, PLC0415
    except ImportError:
        pass
    else:
        sys.exit("n5zarr can be imported")
    for line in sys.stdin:
        each = [axes(r) if r.get("axes") else contents(r) for r in json.loads(line)]
        print(json.dumps(each), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.meta_path.insert(0, _Blocked())
    main()
