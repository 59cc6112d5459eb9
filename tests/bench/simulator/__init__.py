"""A simulator of the stream scheduler: its real code, on a machine of any number of cores."""
