"""The description of a graph, and a run's plan of it: operators, and the steps of a run."""
