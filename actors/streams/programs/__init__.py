"""The programs of operators: their work on batches of rows, in the sequential run and in every
other.
"""
