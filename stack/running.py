"""A process that was started here, and how it is known again."""

from __future__ import annotations

import os
from typing import NamedTuple

import psutil


class Running(NamedTuple):
    """A process that this package started: its number, its start time (epoch seconds), its main port."""

    pid: int
    created: float
    port: int


def of_session(process: psutil.Process, leader: Running) -> bool:
    """Whether the process belongs to the session that the leader opened; a later user of its number is none."""
    return os.getsid(process.pid) == leader.pid and process.create_time() > leader.created - 1.0


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
