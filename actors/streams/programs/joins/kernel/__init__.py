"""A join lane's work on its windows, in native headers."""
