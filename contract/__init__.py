"""What all parts agree on."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]  # the folder that all parts lie in
