"""Make code and addresses with which programs open the data of a server."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from ipaddress import IPv6Address
from urllib.parse import quote

_ZARR = 'import zarr\n\narray = zarr.open_array({zarr}, mode="r")\nprint(array)'
_TENSORSTORE = (
    "import tensorstore\n\n"
    'source = {{"driver": "zarr3", "kvstore": {folder}}}\n'
    "array = tensorstore.open(source, read=True).result()\n"
    "print(array.schema)"
)
_ARRAY = {
    "zarr": _ZARR,
    "xarray": (
        "import xarray\n\n"
        'dataset = xarray.open_dataset({n5}, engine="n5")  # of n5zarr\n'
        "print(dataset)"
    ),
    "tensorstore": _TENSORSTORE,
    "n5zarr": "import n5zarr\n\narray = n5zarr.open({n5})\nprint(array.info)",
}
_GROUP = {
    "zarr": 'import zarr\n\ngroup = zarr.open_group({zarr}, mode="r")\nprint(group)',
    "n5zarr": "import n5zarr\n\ngroup = n5zarr.open({n5})\nprint(group)",
}
_IMAGE = {
    "zarr": _ZARR,
    "tensorstore": _TENSORSTORE,
}
_VIEWERS = {  # each takes the address of an OME-Zarr
    "vizarr": "https://hms-dbmi.github.io/vizarr/?source={}",
    "itk-vtk-viewer": "https://kitware.github.io/itk-vtk-viewer/app/?fileToLoad={}",
    "OME-NGFF validator": "https://ome.github.io/ome-ngff-validator/?source={}",
}


def code_for(
    url: str, path: str, *, is_array: bool, left_out: Collection[str] = ()
) -> Mapping[str, str]:
    """Return Python code that opens a dataset or a group, for each library.

    Parameters
    ----------
    url : str
        Address of the server.
    path : str
        Path of the node below the served location.
    is_array : bool
        Whether it is a dataset.
    left_out : collection of str, optional
        Libraries that cannot open it.

    Examples
    --------
    >>> print(code_for("http://127.0.0.1:8000", "em/s0", is_array=True)["zarr"])
    import zarr
    <BLANKLINE>
    array = zarr.open_array("http://127.0.0.1:8000/zarr3/em/s0", mode="r")
    print(array)
    """
    url, below = for_fsspec(url), f"/{quote(path)}" if path else ""
    places = {
        "zarr": f"{url.rstrip('/')}/zarr3{below}",
        "n5": f"{url.rstrip('/')}/n5{below}",
        "folder": f"{url.rstrip('/')}/zarr3{below}/",
    }
    quoted = {name: json.dumps(place) for name, place in places.items()}
    templates = _ARRAY if is_array else _GROUP
    return {
        name: template.format(**quoted)
        for name, template in templates.items()
        if name not in left_out
    }


def code_for_image(url: str, level: str) -> Mapping[str, str]:
    """Return Python code that opens a level of an OME-Zarr, for each library.

    Examples
    --------
    >>> print(code_for_image("http://127.0.0.1:8000/ome/em", "s0")["tensorstore"])
    import tensorstore
    <BLANKLINE>
    source = {"driver": "zarr3", "kvstore": "http://127.0.0.1:8000/ome/em/s0/"}
    array = tensorstore.open(source, read=True).result()
    print(array.schema)
    """
    place = f"{for_fsspec(url)}/{quote(level)}"
    quoted = {"zarr": json.dumps(place), "folder": json.dumps(f"{place}/")}
    return {name: template.format(**quoted) for name, template in _IMAGE.items()}


def for_fsspec(url: str) -> str:
    """Return an address without ``::``, since fsspec and zarr would split it there.

    Examples
    --------
    >>> for_fsspec("http://[::1]:8000/zarr"), for_fsspec("http://localhost:8000/zarr")
    ('http://[0:0:0:0:0:0:0:1]:8000/zarr', 'http://localhost:8000/zarr')
    """
    scheme, bracket, rest = url.partition("://[")
    address, closing, behind = rest.partition("]")
    try:
        parts = [f"{int(part, 16):x}" for part in IPv6Address(address).exploded.split(":")]
    except ValueError:
        return url
    return f"{scheme}{bracket}{':'.join(parts)}{closing}{behind}"


def viewer_links(url: str) -> Mapping[str, str]:
    """Return addresses that open an OME-Zarr in viewers on the web, by the name of the viewer.

    Examples
    --------
    >>> viewer_links("http://127.0.0.1:8000/ome/em")["vizarr"]
    'https://hms-dbmi.github.io/vizarr/?source=http%3A%2F%2F127.0.0.1%3A8000%2Fome%2Fem'
    """
    return {name: address.format(quote(url, safe="")) for name, address in _VIEWERS.items()}
