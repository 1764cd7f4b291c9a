"""How does `python -m ci.runner` start?"""

import sys

from ci.runner.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
