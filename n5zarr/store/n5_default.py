"""``n5_default``: the registered Zarr codec of N5 blocks, for ``zarr.json`` beside N5 data.

What: array to bytes, one N5 block of mode 0. zarr-n5's ``n5tozarr`` writes such documents beside
``attributes.json``, so that any zarr opens the dataset without :class:`~n5zarr.N5Store`.
Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/n5_default.
Zarr v3: ``{"name": "n5_default", "configuration": {"codecs": [transpose, bytes, compressor]}}``.
Compatible implementations: zarr-n5 (Python), zarrs_n5 (Rust).
Limits: those of :mod:`n5zarr.store.block_codec`. The axes of the array are in N5 order, x first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, override

from zarr.registry import get_codec_class

from n5zarr.codecs.compress import zarr_to_compression
from n5zarr.errors import N5UnrepresentableError, option_error
from n5zarr.format.compression import Compression, Raw
from n5zarr.format.foreign import N5_DEFAULT
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import transposition
from n5zarr.store.block_codec import N5BlockCodec

if TYPE_CHECKING:
    from n5zarr._zarr import ChunkGridMetadata, ZDType

# compressors with the same bytes as in N5, unlike lz4
_COMPRESSORS = ("gzip", "blosc", "zstd", "numcodecs.zlib", "numcodecs.bz2")


@dataclass(frozen=True)
class N5DefaultCodec(N5BlockCodec):
    """Whole N5 blocks as a zarr serializer, under the registered name.

    Parameters
    ----------
    compression : Compression, optional
        The compression of the payloads.
    axis_order : "F", optional
        The axes of a chunk are in N5 order.
    codecs : tuple of mapping
        The codecs of the configuration: a full transposition, ``bytes`` in big endian, and at most
        one compressor.
    """

    codecs: tuple[Mapping[str, Any], ...] = ()

    @override
    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Parse the JSON form; the exact inverse of :meth:`to_dict`.

        Raises
        ------
        N5UnrepresentableError
            The codecs are not those of N5 blocks, or have invalid members (``kind="option"``).
        """
        configuration = data.get("configuration")
        given = configuration.get("codecs") if isinstance(configuration, Mapping) else None
        listed = given if isinstance(given, list | tuple) else ()
        # a codec may be given as a name alone
        codecs = [c if isinstance(c, Mapping) else {"name": c} for c in listed]
        names = [codec.get("name") for codec in codecs]
        endian = _configured(codecs[1]).get("endian", "big") if len(codecs) > 1 else None
        if names[:2] != ["transpose", "bytes"] or len(names) > 3 or endian != "big":
            raise _refused("transpose, bytes in big endian and at most one compressor", given)
        return cls(_compression(codecs[2]) if len(codecs) == 3 else Raw(), "F", tuple(codecs))

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"name": N5_DEFAULT, "configuration": {"codecs": [*map(dict, self.codecs)]}}

    @override
    def validate(
        self, *, shape: tuple[int, ...], dtype: ZDType, chunk_grid: ChunkGridMetadata
    ) -> None:
        super().validate(shape=shape, dtype=dtype, chunk_grid=chunk_grid)
        order = _configured(self.codecs[0]).get("order")
        if not isinstance(order, Sequence) or [*order] != [*transposition(len(shape))]:
            raise _refused(f"the order {[*transposition(len(shape))]} of transpose", order)


def _compression(codec: Mapping[str, Any]) -> Compression:
    """Return the compression of a compressor; zarr checks its members."""
    name = str(codec.get("name"))
    if name not in _COMPRESSORS:
        raise _refused(f"one compressor of {', '.join(_COMPRESSORS)}", name)
    try:
        given = {"configuration": {}, **codec}  # zarr's codecs require one
        checked = get_codec_class(name).from_dict(given).to_dict()
    except (ValueError, TypeError, KeyError) as err:
        raise _refused(f"a compressor that zarr knows: {err}", dict(codec)) from err
    return zarr_to_compression(name, _configured(checked)) or Raw()


def _configured(codec: Mapping[str, Any]) -> Mapping[str, Any]:
    configuration = codec.get("configuration")
    return configuration if isinstance(configuration, Mapping) else {}


def _refused(expected: str, given: object) -> N5UnrepresentableError:
    return option_error(f"codec {N5_DEFAULT}: expected {expected}, got {given!r:.200}")
