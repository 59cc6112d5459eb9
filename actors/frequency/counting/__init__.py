"""The parts of a summary: keys, counters, and the tables that find them."""
