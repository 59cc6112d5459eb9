"""Traces of a system's workers, made of their monitoring records, for viewers such as Perfetto."""
