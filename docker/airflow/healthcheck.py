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
    except (URLError, OSError, ValueError) as error:
        print(f"Airflow does not answer on port {port}: {error}")
        return 1
    ill = {name: health.get(name, {}).get("status") for name in NEEDED}
    ill = {name: status for name, status in ill.items() if status != "healthy"}
    print(ill or "healthy")
    return 1 if ill else 0


if __name__ == "__main__":
    sys.exit(main())
