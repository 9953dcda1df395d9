"""Axes, units, scale and offset, in each way of writing them."""
