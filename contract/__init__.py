"""What all parts agree on."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]  # the folder that all parts lie in


def cache() -> Path:
    """Where `make` and `stack` keep what they fetch and unpack: $HEADRACE_CACHE or `.stack` of the checkout."""
    given = os.environ.get("HEADRACE_CACHE")
    return Path(given).expanduser().absolute() if given else CHECKOUT / ".stack"
