"""Traces of a system's workers, made of monitoring records, for viewers such as Perfetto."""
