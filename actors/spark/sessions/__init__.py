"""Spark sessions that work without any setup."""
