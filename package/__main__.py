"""`python -m headlight`: the command line."""

import sys

from headlight.command import main

if __name__ == "__main__":
    sys.exit(main())
