"""What users chain: streams, and the operators that their methods add."""
