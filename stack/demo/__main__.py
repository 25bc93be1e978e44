"""`python -m stack.demo`; see cli.py. The imports take seconds, and Ctrl-C in them is no traceback either."""

import sys

try:
    from stack.demo.cli import main

    main()
except KeyboardInterrupt:
    sys.exit(130)
