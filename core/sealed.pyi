# This module has no Python API: compiled modules cimport it.
