"""From operators to what runs: checked, numbered where branches meet again, drawn."""
