"""Operators that several methods of streams make.

A function checks an operator's arguments and returns it, without the streams that it reads. Beside
it is the class of its state, where that is in Python. An operator that only one method makes is in
`chaining`.
"""
