"""Payloads and whole blocks: from and to bytes, one module for each compression.

Knows the bytes of every compression (each module implements `compression.Codec`) and of a block
(`block`). May import compression libraries, numpy, `format` and `errors`. Must not import zarr, nor
do input or output.
"""

from n5zarr.codecs.block import Block
from n5zarr.codecs.single_block import decode_block, encode_block

__all__ = ["Block", "decode_block", "encode_block"]
