"""Show containers to people, in browsers and in image programs.

Knows which parts of a container are images, how to show them, and the needs of viewers.
May import all packages below it. Must not parse N5 or Zarr, and must not write to a container.
"""
