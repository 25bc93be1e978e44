"""The streamer image's health check: 0 while the pipeline runs, 1 when it has failed or does not answer.

HEADRACE_STREAMER_PORT is the pipeline file's `streamer.http.port` (8181, as in the file's default).
"""

import json
import os
import sys
from urllib.error import URLError
from urllib.request import urlopen


def main() -> int:
    port = os.environ.get("HEADRACE_STREAMER_PORT", "8181")
    try:
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=4) as answer:
            state = json.load(answer)["state"]
    except (URLError, OSError, ValueError, LookupError, TypeError) as error:
        print(f"no status on port {port}: {error!r}")
        return 1
    print(state)
    return 1 if state in ("failed", "stopped") else 0


if __name__ == "__main__":
    sys.exit(main())
