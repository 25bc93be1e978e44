"""The Airflow image's health check: 0 while database, scheduler and DAG processor are healthy, else 1."""

import json
import os
import sys
from urllib.error import URLError
from urllib.request import urlopen

NEEDED = ("metadatabase", "scheduler", "dag_processor")


def main() -> int:
    port = os.environ.get("AIRFLOW__API__PORT", "8080")
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v2/monitor/health", timeout=8) as answer:
            health = json.load(answer)
        ill = {name: health[name]["status"] for name in NEEDED if health[name]["status"] != "healthy"}
    except (URLError, OSError, ValueError, LookupError, TypeError) as error:
        print(f"no health of Airflow on port {port}: {error!r}")
        return 1
    print(ill or "healthy")
    return 1 if ill else 0


if __name__ == "__main__":
    sys.exit(main())
