"""What ordered streams cost, and what the paper's figures show (Prasaad et al. 2018, section 7).

Modules have `run(n, **options)`, with n rows, and hand back a result with what came out and what
must: the same rows in the same order, however many workers took part.
"""
