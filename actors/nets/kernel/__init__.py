"""Nets at work: entities that are data, and a carrier that takes records from one to the next."""
