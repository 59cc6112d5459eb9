"""The core of running nets: entities are data, and an executor moves records between them."""
