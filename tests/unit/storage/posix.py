"""A mark for tests of files, links and locks that Windows does not have."""

import pytest

from n5zarr.storage import files

posix = pytest.mark.skipif(vars(files)["os"].name == "nt", reason="there are no such locks")
