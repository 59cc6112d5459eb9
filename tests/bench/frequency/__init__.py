"""Counting frequent keys: streams as in Das et al. 2009, section 5."""
