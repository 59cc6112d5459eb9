"""What the tests of streams share."""

import sys
from pathlib import Path

# The tests here import each other's helpers.
sys.path.insert(0, str(Path(__file__).parent))
