"""What operators do with batches of rows, in the sequential run and in every other."""
