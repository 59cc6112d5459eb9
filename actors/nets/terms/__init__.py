"""Nets as data: labels, patterns, expressions on tags, and the combinators of S-Net."""
