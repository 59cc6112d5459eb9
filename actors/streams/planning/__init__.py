"""What is asked for, and what a run makes of it: operators, and the plan of a graph of them."""
