"""What a lane of a join compares: windows of numbers, in native headers."""
