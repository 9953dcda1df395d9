"""Load the compiled kernel, with the C functions of the compression libraries.

The modules that the codec modules use contain libdeflate, zstd and c-blosc; the kernel calls their
functions without the interpreter. If the build of a module hides its functions, the next one that
has them is used; without any, their addresses are 0, and the kernel leaves datasets of this
compression to Python.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_ZSTD = "_zstd" if sys.version_info >= (3, 14) else "backports.zstd._zstd"

# in the order of `library` in _kernel.c, which is called with these addresses unchecked
FUNCTIONS = {
    ("deflate._deflate",): (
        "libdeflate_alloc_decompressor",
        "libdeflate_free_decompressor",
        "libdeflate_gzip_decompress_ex",
        "libdeflate_zlib_decompress_ex",
        "libdeflate_alloc_compressor",
        "libdeflate_free_compressor",
        "libdeflate_gzip_compress",
        "libdeflate_zlib_compress",
    ),
    (_ZSTD, "numcodecs.zstd"): (
        "ZSTD_createDCtx",
        "ZSTD_freeDCtx",
        "ZSTD_decompressDCtx",
        "ZSTD_createCCtx",
        "ZSTD_freeCCtx",
        "ZSTD_compressCCtx",
    ),
    ("numcodecs.blosc",): (
        "blosc_decompress_ctx",
        "blosc_getitem",
        "blosc_compress_ctx",
    ),
}


@cache
def load_kernel() -> Any:  # noqa: ANN401 - a module without types
    """Load the kernel; None if it is not built: no compiler, or Windows."""
    try:
        module = import_module("n5zarr.fast._kernel")
    except ImportError:
        return None
    module.use(*addresses())
    return module


def addresses() -> tuple[int, ...]:
    """Find the functions that the kernel calls.

    Returns
    -------
    tuple of int
        Addresses in this process. All of a library are 0 if one of them is missing.
    """
    return tuple(
        address for modules, names in FUNCTIONS.items() for address in _found(modules, names)
    )


def _found(modules: tuple[str, ...], names: tuple[str, ...]) -> list[int]:
    """Return the addresses in the first module that has the functions."""
    found = (_addresses_in(module, names) for module in modules)
    return next((each for each in found if all(each)), [0] * len(names))


def _addresses_in(module: str, names: tuple[str, ...]) -> list[int]:
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:  # CDLL would search the whole process
            return [0] * len(names)
        library = ctypes.CDLL(spec.origin)
        # Where the program itself has a library, as some builds of Python 3.15 have zstd, the
        # loader gives its functions to the copies in packages, too: a state that one version makes
        # would be used by another.
        if sys.platform not in ("darwin", "win32"):
            program = ctypes.CDLL(None)
            library = program if any(hasattr(program, name) for name in names) else library
        functions = [getattr(library, name) for name in names]
        return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    except (ImportError, OSError, AttributeError):
        return [0] * len(names)
