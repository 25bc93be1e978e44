"""What `from_json` is told, wherever it reads a record or a row."""

from __future__ import annotations

# By itself it takes no text of more than 20,000,000 characters, such as a large blob's base64.
LONG = {"maxStringLen": str(2**31 - 1)}
