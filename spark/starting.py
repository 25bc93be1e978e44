"""Spark's Java, where a job starts it itself, without the line that it says at each start and that nobody can act on.

Java has no option against that line. So what it says goes through a process of its own, which takes out that one line
and passes all else on as it comes. It is no thread of the job, since Java's last words come when the job has ended; and
it heeds no signal, since it ends with Java.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

USELESS = b"WARNING: Using incubator modules: jdk.incubator.vector"
ASKED = b"\0passed on?"
SECONDS = 5.0
PASS_ON = f"""
import contextlib, os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
out = sys.stderr.buffer
for line in iter(sys.stdin.buffer.readline, b""):
    with contextlib.suppress(OSError):  # nobody reads it any more: that must not hold Java up
        if line.strip() == {ASKED!r}:
            os.write(1, b"y")
        elif line.strip() != {USELESS!r}:
            out.write(line)
            out.flush()
"""
_words: list[subprocess.Popen[bytes]] = []  # the process, once there is one


def start_java(settings: Mapping[str, str]) -> None:
    """Makes the Spark context, where neither spark-submit nor who came before has started a Java."""
    if "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    command = [sys.executable, "-ISc", PASS_ON]
    words = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    )  # fmt: skip
    _words[:] = [words]
    SparkContext(conf=conf, gateway=launch_gateway(conf, {"stderr": words.stdin}))


def pass_on() -> None:
    """Returns when what Java has said stands there, so that it is above what is said next."""
    for words in _words:
        assert words.stdin
        assert words.stdout
        try:
            words.stdin.write(ASKED + b"\n")
        except OSError:  # somebody ended it
            continue
        if select.select([words.stdout], [], [], SECONDS)[0]:
            words.stdout.read(1)
