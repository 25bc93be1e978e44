"""Runs Airflow's parts under one process: `python -m stack.airflow_parts`, in Airflow's environment.

`airflow standalone` does nearly this, but its log servers listen on every interface, and it leaves
children behind on SIGTERM. Here all parts end together: on SIGTERM or SIGINT with status 0, and with
status 1 when one of them ends by itself.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from types import FrameType

# Local tasks write their logs where the API server reads them: no log server is needed.
PARTS = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
STOP_SECONDS = 15.0


class Stopped(BaseException):
    pass


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    parts: dict[str, subprocess.Popen[bytes]] = {}
    try:
        subprocess.run(["airflow", "db", "migrate"], stdin=subprocess.DEVNULL, check=True)
        for name, arguments in PARTS.items():
            parts[name] = subprocess.Popen(["airflow", *arguments], stdin=subprocess.DEVNULL)
        return watch(parts)
    except Stopped:
        return 0
    except subprocess.CalledProcessError as error:
        say(f"`airflow db migrate` failed with status {error.returncode}")
        return 1
    finally:
        end(parts)


def watch(parts: dict[str, subprocess.Popen[bytes]]) -> int:
    while True:
        for name, process in parts.items():
            if process.poll() is not None:
                say(f"Airflow's {name} ended with status {process.returncode}; the other parts are stopped")
                return 1
        time.sleep(0.2)


def end(parts: dict[str, subprocess.Popen[bytes]]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for process in parts.values():
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in parts.values():
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def stop(_signal: int, _frame: FrameType | None) -> None:
    raise Stopped


def say(text: str) -> None:
    sys.stderr.write(f"headrace: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
