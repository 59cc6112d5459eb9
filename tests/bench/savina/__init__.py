"""Savina's benchmarks, each written once for every host.

A module has `run(host, n)`, which plays its benchmark with size `n` and returns a `Result`: what
was done, in which time, and what came out against what must come out. S. M. Imam and V. Sarkar,
"Savina - An Actor Benchmark Suite", AGERE! 2014.
"""
