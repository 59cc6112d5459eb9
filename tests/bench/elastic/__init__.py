"""The elastic level of workers, beside the fixed ones: graphs of known cost, and plain actors."""
