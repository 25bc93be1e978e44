"""Stands in for `headrace run`: answers on the pipeline's port, ends as it is told by the file's name.

`crash...`: by SIGKILL of itself, a moment after its start; `wants...`: by an error for a person; `once...`: well.
`slow...` takes its time when it is stopped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from contract import pipeline as pipeline_file


def say(event: str, **fields: object) -> None:
    line = {"event": event, "level": "info", "pipeline": settings.name, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)


def end(*_: object) -> None:
    if settings.name.startswith("slow"):
        time.sleep(0.5)
    say("flushed")
    os._exit(0)


def end_with_parent() -> None:
    while os.read(0, 1):
        pass
    end()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = {
            "pipeline": settings.name, "pid": os.getpid(), "state": "streaming", "lag_seconds": 1.5, "last_error": None,
            "rate_events_per_second": 42.0, "waiting_for": None, "events": {"released": 7},
            "position": {"released": {"file": "binlog.000001", "pos": 4}},
            "source": {"host": "db1", "port": 3306, "server_version": "9.7.4", "connected": True},
            "sinks": [{"type": "kafka", "title": "Kafka", "bootstrap": "h:9092", "healthy": True, "waiting_events": 3}],
            "tables": {"include": ["shop.*"], "exclude": []},
        }  # fmt: skip
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(status).encode())

    def log_message(self, *_: object) -> None:
        pass


settings = pipeline_file.load(Path(sys.argv[-1]))
signal.signal(signal.SIGTERM, end)
threading.Thread(target=end_with_parent, daemon=True).start()
say("streaming")
if settings.name.startswith("crash"):
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
if settings.name.startswith("wants"):
    say("failed", level="error", kind="purged", error="The binlog is gone.", next_step="Begin anew.", retryable=False)
    os._exit(1)
if settings.name.startswith("once"):
    os._exit(0)
ThreadingHTTPServer(("127.0.0.1", settings.streamer.http.port), Handler).serve_forever()
