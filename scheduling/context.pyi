# Nothing for Python: see context.pxd.
