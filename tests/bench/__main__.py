"""`python tests/bench` runs the benchmarks."""

import sys

from run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
