"""An actor's life: start, failure, restart, stop, and the exit of the process."""
