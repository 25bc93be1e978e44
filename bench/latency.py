"""How long after it is sent to MySQL a change is visible in Kafka, at a steady rate of single-row transactions:
`python -m bench.latency`. The row holds the moment before its INSERT is sent, so that a figure has MySQL's own commit
in it, which is printed beside. A consumer that waits for committed records tells when it sees it, by the same clock.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from multiprocessing import Process, SimpleQueue
from pathlib import Path
from statistics import quantiles

from confluent_kafka import Consumer, TopicPartition

from bench.headrace import ROOT
from contract.pipeline import load
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from streamer.kafka.topics import provision

PIPELINE = """\
format: 1
name: {name}
source: {{host: 127.0.0.1, port: {port}, user: headrace, password: "${{BENCH_PASSWORD}}", server_id: {server_id}}}
tables: {{include: ["latency.*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 1, linger_ms: {linger}}}
streamer: {{delivery: {delivery}, http: {{port: {http}}}}}
lake: {{path: unused}}
"""
TABLE = "CREATE TABLE latency.marks (id INT PRIMARY KEY AUTO_INCREMENT, sent BIGINT NOT NULL)"
WARM_SECONDS = 5  # not counted


def write(mysql: MySQL, rate: float, seconds: float, told: SimpleQueue[list[float]]) -> None:
    """A process of its own: inserts at an even pace; tells how long each took, in milliseconds."""
    took = []
    with mysql.connect() as connection, connection.cursor() as cursor:
        began = time.monotonic()
        for n in range(int(rate * seconds)):
            time.sleep(max(0.0, began + n / rate - time.monotonic()))
            sent = time.time_ns()
            cursor.execute("INSERT INTO latency.marks (sent) VALUES (%s)", (sent,))
            took.append((time.time_ns() - sent) / 1e6)
    told.put(took)


def seen(kafka: Kafka, topic: str, count: int, patience: float) -> list[float]:
    """Milliseconds from before the INSERT until the record is read. Raises SystemExit where some are lacking."""
    settings = {"bootstrap.servers": kafka.address, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "fetch.wait.max.ms": 500})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[float] = []
    until = time.monotonic() + patience
    while len(found) < count and time.monotonic() < until:
        message = consumer.poll(1)
        if message is not None and not message.error():
            now = time.time_ns()
            found.append((now - json.loads(message.value() or b"")["after"]["sent"]) / 1e6)
    consumer.close()
    if len(found) < count:
        raise SystemExit(f"{len(found)} of {count} records arrived in {topic}")
    return found


def told(name: str, found: list[float]) -> str:
    cuts = quantiles(found, n=1000)
    return f"{name}: p50 {cuts[499]:.2f} ms, p99 {cuts[989]:.2f} ms, p99.9 {cuts[998]:.2f} ms of {len(found):,}"


def measure(mysql: MySQL, kafka: Kafka, folder: Path, delivery: str, chosen: argparse.Namespace) -> str:
    name, file = delivery.replace("_", "-"), folder / f"{delivery}.yaml"
    values = {"name": name, "port": mysql.port, "kafka": kafka.address, "delivery": delivery, "linger": chosen.linger}
    file.write_text(PIPELINE.format(**values, server_id=free_port(), http=free_port()))
    provision(load(file), [("latency", "marks")])
    with ExitStack() as running, (folder / f"{delivery}.log").open("wb") as log:
        command = [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(file)]
        streamer = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        running.callback(streamer.wait)
        running.callback(streamer.send_signal, signal.SIGTERM)
        while b'"streaming"' not in Path(log.name).read_bytes():
            if streamer.poll() is not None:
                raise SystemExit(Path(log.name).read_text())
            time.sleep(0.1)
        queue: SimpleQueue[list[float]] = SimpleQueue()
        seconds = chosen.seconds + WARM_SECONDS
        writer = Process(target=write, args=(mysql, chosen.rate, seconds, queue))
        writer.start()
        found = seen(kafka, f"{name}.latency.marks", int(chosen.rate * seconds), seconds * 2 + 30)
        inserts = queue.get()
        writer.join()
    warm = int(chosen.rate * WARM_SECONDS)
    return f"{told(delivery, found[warm:])}; the INSERT itself: {told('', inserts[warm:])[2:]}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000, help="transactions a second")
    parser.add_argument("--seconds", type=float, default=30, help="after a warm-up of some seconds")
    parser.add_argument("--linger", type=float, default=5.0, help="kafka.linger_ms of the pipeline")
    parser.add_argument("--delivery", default="at_least_once,exactly_once", help="of these, by commas")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name, ExitStack() as running:
        folder = Path(name)
        mysql = MySQL(folder / "mysql", free_port())
        mysql.start()
        running.callback(mysql.kill)
        kafka = Kafka(folder / "kafka", free_port(), free_port())
        kafka.start()
        running.callback(kafka.stop)
        os.environ["BENCH_PASSWORD"] = mysql.password
        for delivery in chosen.delivery.split(","):
            with mysql.connect() as connection, connection.cursor() as cursor:
                cursor.execute("DROP DATABASE IF EXISTS latency")
                cursor.execute("CREATE DATABASE latency")
                cursor.execute(TABLE)
            print(measure(mysql, kafka, folder, delivery, chosen), flush=True)


if __name__ == "__main__":
    main()
