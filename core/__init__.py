"""The ground that all else stands on: it imports nothing of ours."""
