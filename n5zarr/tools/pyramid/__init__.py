"""Build pyramids: coarser levels of an image, block by block.

Knows how elements become one element, which levels an image needs, and how a dataset becomes its
first level. May import all packages below `tools`, and `tools/convert`, `tools/jobs`. Must not
print anything.
"""
