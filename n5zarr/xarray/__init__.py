"""N5 for xarray: reading, writing, pyramids, BigDataViewer's views, ``ds.n5``."""
