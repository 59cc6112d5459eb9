# It has nothing for Python: compiled modules cimport it.
