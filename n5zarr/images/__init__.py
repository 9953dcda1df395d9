"""Find the images in a container: their levels, axes, channels, colours, contrast and labels.

Knows the attributes by which N5 describes images, makes one model of them,
:class:`~n5zarr.images.image.Image`, for conversion and for viewers, and writes it as documents of
OME-Zarr, whose vocabulary it has. Images of projects come from a room that `rooms` names. May
import all packages below `images`. Must not write to a container, and must not know any viewer.
"""
