from __future__ import annotations

from stack.debezium import cause

TRACE = """org.apache.kafka.connect.errors.ConnectException: An exception occurred in the producer.
\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)
Caused by: io.debezium.DebeziumException: something: below
\tat io.debezium.connector.mariadb.Listener.handle(Listener.java:1)
Caused by: io.debezium.text.ParsingException: DDL statement couldn't be parsed: 'CREATE TABLE t (
  a INET6)'
\t... 24 more
Caused by: org.antlr.v4.runtime.NoViableAltException
\t... 30 more"""


def test_the_cause_is_told_and_not_what_is_around_it() -> None:
    assert cause(TRACE) == "io.debezium.text.ParsingException: DDL statement couldn't be parsed: 'CREATE TABLE t ("


def test_a_failure_without_a_cause_is_told_by_its_first_line() -> None:
    assert cause("java.lang.OutOfMemoryError: Java heap space\n\tat x") == "java.lang.OutOfMemoryError: Java heap space"
