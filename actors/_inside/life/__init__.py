"""An actor's life: spawning, failure, restart, stop, and the exit of the process."""
