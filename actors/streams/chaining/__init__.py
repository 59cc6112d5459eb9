"""What users chain: streams, whose methods add operators, and the graphs that they end in."""
