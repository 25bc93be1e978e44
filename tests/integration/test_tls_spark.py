"""`source.tls` in the Spark jobs: their own questions, and the rows that come over JDBC."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.failures import message_of
from spark.source.row_texts import rows_of
from spark.source.source import Source
from stack.mysql import MySQL
from tests.integration import decoding
from tests.integration.conftest import FreshData
from tests.integration.guarded import Guarded, guarded


@pytest.fixture(scope="module")
def own(tmp_path_factory: Any, fresh_data: FreshData) -> Iterator[Guarded]:
    with guarded(MySQL, tmp_path_factory.mktemp("guarded"), fresh_data) as made:
        decoding.run(made.server, "INSERT INTO safe.t VALUES (1, 'a'), (2, 'b')")
        yield made


def reading(own: Guarded, user: str = "headrace", **tls: Any) -> Pipeline:
    return decoding.pipeline(own.server, "safe.*").model_copy(update={"source": own.source(user, **tls)})


def read(spark: SparkSession, asked: Pipeline, rows: Pipeline) -> list[str]:
    """The shape by `asked`, the rows by `rows`."""
    with Source(asked) as source:
        schema = source.schema("safe", "t")
    assert schema is not None
    reader: Any = SimpleNamespace(pipeline=rows, only=source.only, shown=rows.show)
    return sorted(row["after"] for row in rows_of(spark, reader, schema, ["k0 < 2", "k0 >= 2"]).collect())


def test_rows_come_by_a_certificate_of_the_clients_from_a_server_that_is_trusted(
    spark: SparkSession, own: Guarded
) -> None:
    given = reading(own, "by_x509", **own.documented())
    assert read(spark, given, given) == ['{"id":1,"v":"a"}', '{"id":2,"v":"b"}']


@pytest.mark.parametrize("mode", ["verify_ca", "verify_identity"])
def test_a_server_that_is_not_trusted_is_told_by_both_roads(spark: SparkSession, own: Guarded, mode: str) -> None:
    wrong = reading(own, mode=mode, ca_file="stranger")
    for asked in (wrong, reading(own)):
        with pytest.raises(Exception) as caught:
            read(spark, asked, wrong)
        told = message_of(caught.value, wrong)
        assert f"MySQL at {wrong.source.where} and source.tls do not fit (" in told
        assert own.server.password not in told


def test_a_user_that_needs_tls_does_not_come_in_without(spark: SparkSession, own: Guarded) -> None:
    without = reading(own, "by_tls", mode="disabled")
    with pytest.raises(Exception) as caught:
        read(spark, reading(own), without)
    assert "refused the user by_tls" in message_of(caught.value, without)
    required = reading(own, "by_tls", mode="required")
    assert len(read(spark, required, required)) == 2


def test_files_are_for_a_spark_on_this_machine(
    spark: SparkSession, own: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = reading(own, mode="verify_ca", ca_file="authority")
    monkeypatch.setattr(spark.sparkContext, "master", "spark://elsewhere:7077", raising=False)
    with pytest.raises(LakeError, match="machines elsewhere do not have"):
        read(spark, given, given)
