"""Bytes to bytes: one module per compression, and whole blocks. No zarr here."""

from n5zarr.codecs.block import Block, decode_block, encode_block

__all__ = ["Block", "decode_block", "encode_block"]
