"""What a failure means to the operator: one message that says what, where, and what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pymysql

from contract import steps
from contract.names import lake_root
from contract.pipeline import Pipeline
from contract.status import StatusFormatError
from contract.topic_template import unescape
from quality.found import guarded
from spark.errors import LakeError, PassingError, chain, reason
from spark.frames import frames
from spark.lake.broken import BROKEN
from spark.lake.own_tables import own_back
from spark.source.servers import SERVERS
from spark.source.source import OTHER_ANSWERS, OTHER_SERVER

LOST = (
    "records were deleted from Kafka before they reached the lake ({reason}). Move {checkpoint} away, so that "
    "compaction begins at the topics' earliest records (what is in the lake already is passed by), and "
    "{snapshot}, which reads the tables again; until then those that lack records count as not "
    "snapshotted. Raise kafka.retention_hours above the longest pause"
)


class Rule(NamedTuple):
    """What an error means in whose texts the pattern is. `passing`: somebody is away for now, so that another run may
    do better with nothing mended; what is not known to be so waits for a person."""

    pattern: str
    meaning: str
    passing: bool = False


STORE = (
    "the store of the lake {lake} does not do what it is asked ({reason}): see whether it answers, and to lake.s3 in "
    "{path}"
)
KAFKA = "Kafka at {kafka} does not answer ({reason}): start it, or mend kafka.bootstrap"
RULES = (
    Rule(
        r"S3AFileSystem not found",
        "the lake {lake} is on S3, for which Spark has no jars: run `make spark-s3-jars`; where HEADRACE_SPARK_JARS "
        "is set, add the folder that it prints to it, behind a colon",
    ),
    Rule(
        r"InvalidAccessKeyId|SignatureDoesNotMatch|NoAuthWithAWSException|NoAwsCredentialsException|InvalidToken|"
        r"ExpiredToken|Unable to load credentials|\(Service: S3, Status Code: 40[13]\b",
        "the store of the lake {lake} refuses who asks, or what is asked ({reason}): mend key and secret in lake.s3 of "
        "{path} (or AWS_ACCESS_KEY_ID and its like, where Spark runs), or the rights on the bucket",
    ),
    Rule(
        r"UnknownStoreException|NoSuchBucket|bucket does not exist|Bucket does not exist",
        "the store of the lake {lake} has no such bucket: make it, or mend lake.path in {path}",
    ),
    Rule(
        r"Unable to execute HTTP request|ApiCall(Attempt)?TimeoutException|AWSNoResponseException|"
        r"AWSServiceThrottled|SlowDown|Service: S3, Status Code: (5\d\d|429)\b",
        STORE,
        passing=True,
    ),
    Rule(r"SdkClientException|software\.amazon\.awssdk\S*Exception|Service: S3", STORE),
    Rule(
        r"No space left on device|Disk quota exceeded",
        "the disk is full: free some space under {lake} (or where Spark keeps its temporary files, spark.local.dir). "
        "Where a compaction has much to land, as behind a pause, a smaller compaction.max_offsets_per_batch in {path} "
        "makes its batches smaller, also the one that did not end, unless some of it is in the lake already",
    ),
    Rule(
        r"Permission denied|Read-only file system|Mkdirs failed|AccessDenied(Exception)?\b.*(file|path)",
        "the lake {lake} cannot be written ({reason}): give it to the user that runs Spark, or change lake.path",
    ),
    Rule(
        r"DELTA_CONCURRENT|Concurrent(Append|Delete\w+|Transaction|Write|Modification)Exception",
        "somebody else wrote a table of the lake {lake} at the same moment ({reason}). Only Headrace's own jobs may, "
        "one at a time: find who that is. Nothing was lost; run this again",
    ),
    Rule(
        BROKEN,
        "a file of the lake is missing or cannot be read ({reason}). {back}",
    ),
    # The line of Spark's text that names the partition, before those that say what the rest is about.
    Rule(r"Could not read records in offset|offset was changed from", LOST),
    Rule(
        r"KAFKA_DATA_LOSS|KafkaIllegalStateException|OffsetOutOfRange|Some data may have been lost|were gone",
        LOST,
    ),
    Rule(
        r"Access denied for user",
        "{server} at {source} refused the user {user} ({reason}): mend source.user or its password",
    ),
    Rule(
        r"certificate verify failed|PKIX path|SSLHandshakeException|SSL is required|secure-transport|\[SSL: |"
        r"Server identity verification failed|CertificateException|CertPathValidator",
        "{server} at {source} and source.tls do not fit ({reason}): mend source.tls, or the server's certificate",
    ),
    Rule(
        OTHER_ANSWERS,
        "another server answered at {source}, or at snapshot.replica, than the one whose rows were read ({reason}): "
        f"{OTHER_SERVER}",
    ),
    Rule(
        r"Communications link failure|Can not read response from server|Can't connect to MySQL|"
        r"Lost connection to MySQL|has gone away|Connection refused",
        "{server} at {source} does not answer ({reason}): start it, or mend source.host and source.port",
        passing=True,
    ),
    Rule(r"TimeoutException|DisconnectException|No resolvable bootstrap", KAFKA, passing=True),
    Rule(r"Failed to construct kafka", KAFKA),
    Rule(
        r"spark\.driver\.maxResultSize|OutOfMemoryError|GC overhead limit exceeded|^MemoryError$",
        "Spark has too little memory for this ({reason}): give it more, by HEADRACE_SPARK_MEMORY (1g unless set), and "
        "by spark.driver.maxResultSize where the reason names that. Or ask for less at a time: of a compaction by a "
        "smaller compaction.max_offsets_per_batch in {path}, of other jobs by tables' names",
    ),
)


def message_of(error: BaseException, pipeline: Pipeline) -> str:
    """One paragraph. Of an error that nobody here knows, standard error gets the place in the code besides."""
    for known in _causes(error):
        if isinstance(known, LakeError | StatusFormatError):
            return str(known)
    if rule := _rule(error):
        said, told = _said(error, rule.pattern), _told(error)
        return rule.meaning.format(reason=said, back=_back(pipeline, told), **_words(pipeline))
    print(frames(_causes(error)), file=sys.stderr, flush=True)
    said = guarded(reason(error), "\n".join(chain(error)), "it tells a value of a row, and is left out")
    return f"{type(error).__name__}: {said}. The log above has the details"


def passing(error: BaseException) -> bool:
    """Whether another run may do better with nothing mended."""
    for known in _causes(error):
        if isinstance(known, LakeError):
            return isinstance(known, PassingError)
    rule = _rule(error)
    return rule is not None and rule.passing


def _rule(error: BaseException) -> Rule | None:
    told = _told(error)
    return next((rule for rule in RULES if any(re.search(rule.pattern, text) for text in told)), None)


def _told(error: BaseException) -> list[str]:
    return [type(error).__name__, *chain(error)]


def records_lost(pipeline: Pipeline, reason: str) -> LakeError:
    return LakeError(LOST.format(reason=reason, **_words(pipeline)))


def _words(pipeline: Pipeline) -> dict[str, str]:
    return {
        "lake": pipeline.lake.place,
        "path": str(pipeline.path),
        "server": SERVERS[pipeline.source.flavor].title,
        "snapshot": steps.snapshot(pipeline),
        "source": " or ".join(server.where for server in pipeline.source.servers()),
        "user": pipeline.source.user,
        "kafka": pipeline.kafka.bootstrap,
        "checkpoint": f"{lake_root(pipeline)}/_checkpoints/changes",
    }


def _back(pipeline: Pipeline, told: Sequence[str]) -> str:
    """The way back from a file of the lake that is lost, which the texts may name."""
    return own_back(pipeline, told) or (
        "Run this again: a snapshot that was taken in meanwhile puts others in the place of a table's files. Where it "
        f"says the same, put it back from a copy. Without one: {_anew(pipeline, told)}; where it is one of _changes, "
        'see "A file of the lake that is lost" in docs/operations.md'
    )


def _anew(pipeline: Pipeline, told: Iterable[str]) -> str:
    """What makes the table anew of which the texts name a file; where they name none, whichever it is."""
    path = re.compile(rf"{re.escape(lake_root(pipeline))}/([^_/][^/\s]*)/([^/\s]+)/")
    for db, table in (found.groups() for text in told for found in path.finditer(text)):
        names = unescape(db), unescape(table)
        if names[0] and names[1] and pipeline.tables.match(names[0], names[1]):
            return f"{steps.snapshot_table(pipeline, '.'.join(filter(None, names)))}, which makes it anew"
    return f"where it is one of a table, {steps.snapshot(pipeline)} for it, which makes it anew"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _said(error: BaseException, pattern: str) -> str:
    """The shortest line that says it, without the Java class before it."""
    if isinstance(error, pymysql.MySQLError) and len(error.args) > 1:
        return str(error.args[1])
    lines = [line.strip() for text in chain(error) for line in text.splitlines()]
    found = [line for line in lines if re.search(pattern, line)]
    return re.sub(r"^(Caused by: )?([\w$]+\.)+[\w$]+: ", "", min(found, key=len, default=reason(error)))[:300]
