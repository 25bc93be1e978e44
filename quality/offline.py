"""Pages of Great Expectations that load nothing: browsers of who reads them are often without a way to the internet.

Its styles and scripts are on public servers, and its inline scripts need those; pages.html stands in for both. Links
to pages elsewhere stay.
"""

from __future__ import annotations

import re
from pathlib import Path

HEAD = Path(__file__).with_name("pages.html").read_text()
SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
LINK = re.compile(r"<(?:link|base)\b[^>]*>", re.IGNORECASE)  # also to the icon, of 4 MB of files beside the pages
LOADED = re.compile(r"""<[a-z]+\b[^>]*\s(?:src|srcset|poster|data)\s*=\s*["']?\s*(?:https?:)?//[^>]*>""", re.IGNORECASE)
STYLED = re.compile(r"""(?:@import\s+)?url\(\s*["']?\s*(?:https?:)?//[^)]*\)""", re.IGNORECASE)
FOOTER = re.compile(r"<footer\b.*?</footer\s*>", re.DOTALL | re.IGNORECASE)  # asks for a subscription
END = "</head>"


def offline(page: str) -> str:
    """The page without what it loads from elsewhere, and without scripts."""
    for gone in (SCRIPT, LINK, LOADED, FOOTER):
        page = gone.sub("", page)
    return STYLED.sub("none", page).replace(END, HEAD + END, 1)
