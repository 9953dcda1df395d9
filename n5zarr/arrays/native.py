"""Where the functions of the compression libraries are, for the compiled kernel.

libdeflate, zstd and c-blosc are in the packages ``deflate`` and ``numcodecs`` that the codec
modules use; their C functions can be called there without the interpreter. A package that is built
so that they cannot be found has address 0: the kernel calls the codec module instead.
"""

from __future__ import annotations

import ctypes
from importlib.util import find_spec

__all__ = ["addresses"]

# in the order of `library` in _kernel.c
_FUNCTIONS = {
    "deflate._deflate": (
        "libdeflate_alloc_decompressor",
        "libdeflate_free_decompressor",
        "libdeflate_gzip_decompress_ex",
        "libdeflate_zlib_decompress_ex",
    ),
    "numcodecs.zstd": (
        "ZSTD_createDCtx",
        "ZSTD_freeDCtx",
        "ZSTD_decompressDCtx",
        "ZSTD_createCCtx",
        "ZSTD_freeCCtx",
        "ZSTD_compressCCtx",
    ),
    "numcodecs.blosc": (
        "blosc_decompress_ctx",
        "blosc_getitem",
        "blosc_compress_ctx",
    ),
}


def addresses() -> tuple[int, ...]:
    """Find the functions that the kernel calls.

    Returns
    -------
    tuple of int
        Addresses in this process. All of a library are 0 if one of them is not found.
    """
    found: list[int] = []
    for module, names in _FUNCTIONS.items():
        try:
            library = ctypes.CDLL(getattr(find_spec(module), "origin", ""))
            found += [_address(getattr(library, name)) for name in names]
        except (ImportError, OSError, AttributeError, TypeError):
            found += [0] * len(names)
    return tuple(found)


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
