"""What tasks do with their partitions, and the functions that Spark calls in them."""
