"""Find the images in a container: their levels, axes, channels, colours, contrast and labels.

Knows the attributes by which N5, BigDataViewer and OME-Zarr describe images, and makes one model of
them, :class:`~n5zarr.images.image.Image`, for conversion and for viewers. May import all packages
above `images`. Must not write to a container, and must not know any viewer.
"""
