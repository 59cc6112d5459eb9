"""The work of tasks on their partitions, and the functions that Spark calls in them."""
