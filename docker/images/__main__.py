"""`python -m docker.images`: builds both images, runs them on real servers, and says so in its last line."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from contract import cache
from docker.images import airflow_trial, dockerd, trial
from docker.images.buildah import Buildah
from docker.images.dockerd import Docker
from stack import maven, paths
from stack.errors import StackError
from streamer import VERSION

FOLDER = paths.CHECKOUT / "docker"
STREAMER, AIRFLOW = f"headrace-streamer:{VERSION}", f"headrace-airflow:{VERSION}"


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="docker.images", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long the streamer's image runs (60)")
    parser.add_argument("--only", choices=("streamer", "airflow"), help="build and try this image alone")
    return parser.parse_args(words)


def engine(logs: Path) -> Docker | Buildah:
    """Docker where its engine answers, else buildah."""
    return Docker(logs / "build.log") if dockerd.answers() else Buildah(cache() / "images", logs / "build.log")


def main(words: Sequence[str] | None = None) -> str:
    """The closing line. Raises StackError."""
    given = arguments(words)
    logs = paths.writable_folder(paths.data() / "images", "the checkout's permissions")
    for name in ("build.log", "streamer.log", "airflow.log"):
        (logs / name).unlink(missing_ok=True)
    builder = engine(logs)
    print(f"images: building with {builder.name}; log {logs / 'build.log'}", flush=True)
    said = [of_streamer(builder, logs, given.seconds)] if given.only != "airflow" else []
    if given.only != "streamer":
        said.append(of_airflow(builder, logs))
    return "images: ok, " + "; ".join(said)


def of_streamer(builder: Docker | Buildah, logs: Path, seconds: float) -> str:
    built = build(builder, "streamer", STREAMER, {})
    print(f"images: running {STREAMER} for {seconds:.0f} s on a real MySQL and Kafka", flush=True)
    with tempfile.TemporaryDirectory(prefix="images-", dir=logs) as folder:
        outcome = trial.run(builder, STREAMER, Path(folder), seconds)
    return f"{built}, {outcome.rows} rows in and {outcome.events} events out in {outcome.seconds:.0f} s, stopped with 0"


def of_airflow(builder: Docker | Buildah, logs: Path) -> str:
    built = build(builder, "airflow", AIRFLOW, {"jars": maven.spark_jars_folder()})
    print(f"images: starting {AIRFLOW}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="images-", dir=logs) as folder:
        dags = airflow_trial.run(builder, AIRFLOW, Path(folder))
    print(f"images: {AIRFLOW} started, asked and stopped in {time.monotonic() - began:.0f} s", flush=True)
    return f"{built}, {dags} DAGs"


def build(builder: Docker | Buildah, part: str, tag: str, contexts: dict[str, Path]) -> str:
    began = time.monotonic()
    builder.build(FOLDER / part / "Dockerfile", tag, contexts, paths.CHECKOUT)
    size = builder.size(tag) / 1e6
    print(f"images: {tag} built in {time.monotonic() - began:.0f} s, {size:.0f} MB", flush=True)
    return f"{tag} {size:.0f} MB"


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    logging.basicConfig(level=logging.WARNING, format="  %(message)s", stream=sys.stdout)
    logging.getLogger("stack").setLevel(logging.INFO)
    try:
        print(main())
    except StackError as error:
        sys.exit(f"images: {error}")
    except KeyboardInterrupt:
        sys.exit("images: interrupted")
