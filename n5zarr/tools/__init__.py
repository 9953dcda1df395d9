"""Convert, check and repair whole containers, build pyramids, refer to blocks.

Knows how to process many blocks on several workers, and how to continue an interrupted run. Steps
for other formats come from rooms that `rooms` names. May import all packages below it. Must not
parse N5 or print anything: results are values.
"""
