"""How a stream graph is scheduled: stages, lanes, heuristics, estimates."""
