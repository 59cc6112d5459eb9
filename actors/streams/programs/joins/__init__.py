"""Joins: predicates, indexes of partners, and programs."""
