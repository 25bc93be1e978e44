"""`python -m stack`: see `stack.cli`."""

import signal

# Until the command has its own handlers, Ctrl-C ends it at once: nothing was started yet.
signal.signal(signal.SIGINT, signal.SIG_DFL)

from stack.cli import main  # noqa: E402

main()
