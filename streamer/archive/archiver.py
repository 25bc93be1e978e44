"""One run of `headrace archive`: from the server's binlog files to those of the archive.

It begins with the oldest file that the server has, or where the archive ends. Each time it connects, the last bytes
that are archived are compared with the server's before anything is added.
"""

from __future__ import annotations

import threading
import time

import structlog

from contract.pipeline import Pipeline
from contract.pipeline_archive import Archive
from contract.sequence import file_number
from streamer import source as sources
from streamer.archive import store
from streamer.archive.dump import FileDump, refuse_taken_id
from streamer.archive.errors import ArchiveGapError, NoArchiveError
from streamer.archive.files import FARTHEST, PART, Kept, Part, differs
from streamer.archive.objects import Objects, Uploads
from streamer.archive.reading import Reading
from streamer.archive.status import Status
from streamer.connection_errors import dump_error
from streamer.errors import ConnectionLostError, HeadraceError
from streamer.protocol.packets import ServerAnswerError

log = structlog.get_logger("streamer")
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, REMIND_SECONDS = 1.0, 30.0, 60.0


def section(pipeline: Pipeline) -> Archive:
    """Raises NoArchiveError."""
    if pipeline.archive is None:
        hint = "Add it, with archive.target: a folder, or a URL such as s3://bucket/folder"
        raise NoArchiveError("archive", f"the pipeline of {pipeline.path}", "it has no section archive", hint)
    return pipeline.archive


class Archiver:
    """`stop` may be set by a signal. `until_now`: the run ends at the end of the server's last file."""

    def __init__(self, pipeline: Pipeline, stop: threading.Event, until_now: bool) -> None:
        self._settings = section(pipeline)
        self._source = self._settings.reader(pipeline.source)
        self._stop = stop
        self._until_now = until_now
        self._patience = pipeline.streamer.shutdown_seconds
        self.status = Status(pipeline.name, self._settings.target, self._settings.folder)
        self._objects: Objects | None = None
        self._uploads: Uploads | None = None
        self._uuid = ""

    def run(self) -> None:
        """Until the stop, or the end. Raises HeadraceError where no time will mend it."""
        with store.locked(self._settings.folder):
            try:
                self._until_ended()
            except HeadraceError as error:
                self.status.note(error)
                self.status.enter("failed")
                raise
            finally:
                if self._uploads:
                    self._uploads.stop(self._patience)
            self.status.enter("stopped")
            log.info("stopped", file=self.status.file, position=self.status.position)

    def _until_ended(self) -> None:
        wait, reminded, said = FIRST_WAIT_SECONDS, 0.0, ""
        while not self._stop.is_set():
            before = self.status.bytes
            try:
                self._connected()
                return
            except HeadraceError as error:
                if not error.retryable:
                    raise
                self.status.note(error)
                self.status.enter("waiting")
                now = time.monotonic()
                if error.kind != said or now - reminded >= REMIND_SECONDS:
                    log.warning("waiting", kind=error.kind, error=str(error))
                    reminded, said = now, error.kind
                if self.status.bytes > before:
                    wait = FIRST_WAIT_SECONDS
            self._stop.wait(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    def _connected(self) -> None:
        facts = sources.facts(self._source)
        if not self._uuid:
            refuse_taken_id(self._source, facts, self._stop.wait)
        self._of_server(facts.server_uuid)
        with store.explained(self._folder.path):
            reading = Reading(self._place(), self._folder, self.status, self._stop)
        try:
            dump = FileDump(self._source, reading.file.name, reading.file.start, self._until_now)
            with store.explained(self._folder.path):
                ended = reading.run(dump, self._check_uploads)
        except ServerAnswerError as error:
            raise self._refused(error, reading.file) from None
        finally:
            reading.file.let_go()
        place = file_number(reading.file.name), reading.file.at
        if ended and not (self._until_now and place >= (file_number(facts.file), facts.pos)):
            where, hint = f"the binlog of {self._source.where}", "The archive connects again by itself"
            raise ConnectionLostError("read", where, "the server ended the dump, as it does when it stops", hint)
        if self._uploads and not self._stop.is_set():
            self._uploads.finish()

    def _of_server(self, uuid: str) -> None:
        """Each server's files are in a folder of its own."""
        if uuid != self._uuid:
            if self._uploads:
                self._uploads.finish()
            self._folder = store.Folder(self._settings.folder, uuid)
            self._objects = self._uploads = None
            if self._settings.remote:
                self._objects = Objects(self._settings, uuid)
                self._fetch_open(self._objects, self._objects.sizes())
                self._uploads = Uploads(self._objects, self._folder, self._settings.upload_seconds)
                self._uploads.start()
            self.status.server, self.status.server_uuid = self._source.where, uuid
            log.info("archiving", server=self._source.where, uuid=uuid, into=str(self._folder.path))
            self._uuid = uuid

    def _fetch_open(self, objects: Objects, known: dict[str, int]) -> None:
        """Into a spool that has nothing of this server."""
        if self._folder.sizes() or self._folder.open_name():
            return
        complete = store.in_order(known)
        for name in store.in_order({name.removesuffix(PART): 0 for name in known if name.endswith(PART)}):
            if not complete or file_number(name) > file_number(next(reversed(complete))):
                objects.fetch(name + PART, self._folder.path / (name + PART))
                log.info("fetched the open file", file=name, from_=objects.url)

    def _place(self) -> Kept:
        """The file with which the dump begins."""
        on_server = sources.files(self._source)
        complete, open_name = self._folder.sizes(), self._folder.open_name()
        if self._objects:
            complete = store.in_order({**self._objects.sizes(), **complete})
        last = next(reversed(complete), None)
        if last is not None and (open_name is None or file_number(open_name) <= file_number(last)):
            if last in on_server and complete[last] <= FARTHEST:
                return Kept(last, self._folder.path, complete[last], self._head(last))
            open_name = store.following(last)
        name = open_name or next(iter(on_server))
        if name not in on_server:
            raise self._lacking(name, list(on_server))
        return Part(name, self._folder.path)

    def _head(self, name: str) -> bytes:
        if self._objects is None or (self._folder.path / name).exists():
            return self._folder.head(name)
        return self._objects.head(name)

    def _lacking(self, name: str, on_server: list[str]) -> HeadraceError:
        first = on_server[0]
        if file_number(first) <= file_number(name):
            return differs(name, f"the server does not have it, its last file is {on_server[-1]}", self._folder.path)
        end = f"{name.rpartition('.')[0]}.{file_number(first) - 1:0{len(name.rpartition('.')[2])}}"
        missing = name if name == end else f"{name} to {end}"
        cause = f"the server has purged {missing} before the archive had all of it; its oldest file is {first}"
        hint = (
            f"No restore crosses the gap: take a new backup of the server, move the folder {self._folder.path} away "
            "(and what was uploaded of it), and start again; keep binlogs longer (binlog_expire_logs_seconds) than "
            "the archive may be away"
        )
        return ArchiveGapError("archive", f"the binlog of {self._source.where}", cause, hint)

    def _refused(self, answer: ServerAnswerError, file: Kept) -> HeadraceError:
        text = answer.message.lower()
        if "impossible position" in text or "> file size" in text:
            cause = f"the archive has {file.start} bytes or more of it, the server less"
            return differs(file.name, cause, self._folder.path)
        if "could not find" in text:  # purged, or renamed, since it was listed
            return self._lacking(file.name, list(sources.files(self._source)))
        return dump_error(self._source, answer.code, answer.message)

    def _check_uploads(self) -> None:
        """Raises what ended the uploads."""
        if self._uploads:
            self.status.uploads_waiting = self._uploads.waiting
            error = self._uploads.error
            if error:
                self.status.note(error)
                if not error.retryable:
                    raise error
