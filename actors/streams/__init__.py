"""Ordered streams."""
