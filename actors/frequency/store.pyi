# This module has no Python API.
