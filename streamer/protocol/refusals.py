"""What the decoder does not go past, each with its reason and the operator's next step."""

from __future__ import annotations

from streamer.errors import (
    AnonymousError,
    BegunAnewError,
    CorruptEventError,
    DecodeError,
    IncidentError,
    SourceRefusedError,
    UnknownEventError,
    UnsupportedTransactionError,
)
from streamer.protocol import events as ev

ROW_FORMAT = (
    "Set binlog_format = 'ROW' (MySQL: SET PERSIST; MariaDB: SET GLOBAL, and in its configuration), and see that no "
    "session sets it otherwise. "
)
# A checkpoint moves with what was read alone: the same pipeline would stop here again.
ANEW = "start a pipeline of a new name behind it (streamer.start), with a new snapshot"
PASS_BY = ANEW.capitalize()
REASONS: dict[int, tuple[type[DecodeError], str, str]] = {
    ev.INCIDENT: (
        IncidentError,
        "the source says that it lost events here",
        "Check the source's error log; on MariaDB run FLUSH BINARY LOGS, so that no reader meets it again; then "
        + ANEW,
    ),
    ev.ANONYMOUS_GTID: (
        AnonymousError,
        "the transaction has no GTID",
        "A server gives it with another gtid_mode than ON alone: run SET GLOBAL gtid_mode = ON_PERMISSIVE, and start "
        "again. The stream goes on by file and position then, and by GTID from the next start on, once all such ones "
        f"have passed and gtid_mode is ON. Where that is refused, too, {ANEW}",
    ),
    ev.START_ENCRYPTION: (
        UnsupportedTransactionError,
        "the binlog is encrypted, and what follows does not come in the clear",
        f"Set encrypt_binlog=OFF in the server's configuration, restart it; then {ANEW}",
    ),
    **dict.fromkeys(
        (ev.BEGIN_LOAD_QUERY, ev.EXECUTE_LOAD_QUERY),
        (
            UnsupportedTransactionError,
            "LOAD DATA was logged as a statement, not as rows",
            ROW_FORMAT + PASS_BY,
        ),
    ),
}


def event(kind: int) -> DecodeError:
    """An event that stops the stream."""
    error, cause, hint = REASONS.get(
        kind,
        (
            UnknownEventError,
            "this version does not know it, and it may hold data",
            f"Upgrade Headrace, or {ANEW}",
        ),
    )
    return error("read", f"event {ev.name_of(kind)}", cause, hint)


def statement(db: str, word: str) -> UnsupportedTransactionError:
    """`db`: its session's database, if any; `word`: its first one. More of it may hold values."""
    session = f"a session in the database {db}" if db else "a session without a database"
    what = f"{word or 'a statement'} of {session} changes rows by itself"
    return _transaction(f"{what}, not by row events, or is none that is known not to", ROW_FORMAT + PASS_BY)


def xa() -> UnsupportedTransactionError:
    return _transaction("it is an XA statement that no row-format binlog is known to hold", PASS_BY)


def unknown_xa() -> UnsupportedTransactionError:
    cause = "it commits an XA transaction that was prepared before the place where reading began"
    return _transaction(cause, PASS_BY)


def unknown_place(file: str, pos: int) -> UnsupportedTransactionError:
    cause = (
        f"the checkpoint is at {file}:{pos}, beyond 4 GiB, and an XA transaction is open there whose place it does not "
        "tell: positions behind it could not be told from others"
    )
    return _transaction(cause, PASS_BY)


def held(limit: int) -> UnsupportedTransactionError:
    cause = f"the rows of XA transactions that are prepared, or will be, take more than {limit:,} bytes"
    hint = (
        "End those that XA RECOVER lists and nobody needs, by XA COMMIT or XA ROLLBACK; raise "
        "streamer.ledger.max_bytes in the pipeline file, which is the limit; then start again"
    )
    return _transaction(cause, hint)


def savepoint() -> UnsupportedTransactionError:
    return _transaction("it has a savepoint whose name cannot be read", PASS_BY)


def rollback(gtid: str) -> UnsupportedTransactionError:
    cause = (
        f"{gtid} takes back rows that were sent already, so that Kafka and the lake hold rows that were never "
        "committed: MariaDB writes what was rolled back, where a temporary table or a table without transactions took "
        "part, and rows of a transaction beyond streamer.ledger.max_bytes, or beyond the room for temporary files, are "
        "sent while it is read"
    )
    hint = (
        "Start a pipeline of a new name behind it, with a new snapshot; keep such tables out of large transactions, or "
        "raise streamer.ledger.max_bytes in the pipeline file and give the streamer's TMPDIR as much room"
    )
    return _transaction(cause, hint)


def out_of_order(step: str, state: str) -> UnsupportedTransactionError:
    hint = f"Read the place with mysqlbinlog; if the source crashed there, {ANEW}"
    return _transaction(f"a {step} cannot stand {state}", hint)


def begun_anew(told: str) -> BegunAnewError:
    cause = f"the server's binlog was begun anew: {told}"
    return BegunAnewError("read", "the binlog", cause, "The stream goes on in it, in a new epoch")


def cannot_go_on(where: str, told: str) -> BegunAnewError:
    """MySQL reads on in a file by its name, and where that was removed by a reset the new one has another length."""
    cause = f"the server cannot go on in the binlog that is open, as behind a RESET: {told}"
    return BegunAnewError("read", where, cause, "The stream goes on in what there is now, in a new epoch")


def anonymous(operation: str, where: str) -> AnonymousError:
    _, cause, hint = REASONS[ev.ANONYMOUS_GTID]
    return AnonymousError(operation, where, cause, hint)


def never_behind(error: BegunAnewError) -> CorruptEventError:
    hint = "Read the place with mysqlbinlog; then a pipeline of a new name, with a new snapshot, begins behind it"
    cause = f"{error.cause}; so it was after each new beginning"
    return CorruptEventError("read", "the binlog", cause, hint)


def shorter(where: str, told: str) -> SourceRefusedError:
    cause = f"the binlog ends before what was streamed: {told}"
    hint = f"The server lost what it had sent (a crash without sync_binlog=1), or is another one: {ANEW}"
    return SourceRefusedError("read", where, cause, hint)


def _transaction(cause: str, hint: str) -> UnsupportedTransactionError:
    return UnsupportedTransactionError("read", "transaction", cause, hint)
