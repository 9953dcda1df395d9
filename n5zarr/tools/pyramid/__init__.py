"""Build pyramids: coarser levels of an image, block by block.

Knows how elements become one element, and which levels an image needs. May import all packages
above `tools`, and `tools/jobs`. Must not print anything.
"""
