"""The scheduling of stream graphs: stages, lanes, heuristics, estimates."""
