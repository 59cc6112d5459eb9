"""Answer a query: `python examples/tpcxbb/run.py --query 4 --scale 0.1`; see README.md."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # where the package is, and not in the package
    from tpcxbb.command import main

    sys.exit(main())
