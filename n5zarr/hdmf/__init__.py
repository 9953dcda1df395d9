"""Read, write and convert NWB, and other data of HDMF, in N5 containers, through hdmf-zarr.

Knows hdmf's builders and backends. May import hdmf, hdmf-zarr, `tools`, `arrays` and everything
below. Must not know how N5 is stored.

>>> from n5zarr.hdmf import NWBN5IO
>>> with NWBN5IO("session.n5", mode="r") as io:  # doctest: +SKIP
...     nwbfile = io.read()
"""

from n5zarr.errors import N5MissingDependencyError

try:
    from n5zarr.hdmf.backend import N5IO, NWBN5IO
    from n5zarr.hdmf.comparison import differences
    from n5zarr.hdmf.conversion import convert
except ImportError as err:
    if err.name not in ("hdmf", "hdmf_zarr", "pynwb"):
        raise
    raise N5MissingDependencyError(err.name.replace("_", "-"), "NWB", "hdmf") from err

__all__ = ["N5IO", "NWBN5IO", "convert", "differences"]
