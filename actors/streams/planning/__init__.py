"""The description of a graph as operators, and the plan and pipelines of its runs."""
