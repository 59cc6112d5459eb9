"""Joins: predicates, finders of partners, and programs."""
