"""`python -m stack`: see `stack.cli`."""

from stack.cli import main

main()
