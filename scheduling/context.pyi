# This module has no Python API: see context.pxd.
