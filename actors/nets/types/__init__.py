"""Types of nets: they are inferred, and checked, before a record flows."""
