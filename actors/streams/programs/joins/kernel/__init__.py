"""What a lane of a join does with its windows, in native headers."""
