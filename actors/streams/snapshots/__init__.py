"""SnapshotStore: the state of a run at one cut, as bytes, in files and back in a run."""
