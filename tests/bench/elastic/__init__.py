"""The elastic level of workers, against fixed ones: graphs of known cost, and plain actors."""
