"""N5 to Zarr: documents, keys and chunks. Plain JSON and bytes; no zarr, no input or output."""
