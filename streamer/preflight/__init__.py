"""What the source must be set to, and `headrace check`."""
