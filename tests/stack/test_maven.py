from __future__ import annotations

import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

from stack import maven, versions
from stack.fetch import DownloadError


def test_the_pom_names_every_artifact_and_what_is_left_out() -> None:
    at = "{http://maven.apache.org/POM/4.0.0}"
    tree = ElementTree.fromstring(maven.pom_text(versions.SPARK_JARS))
    found = {
        element.findtext(f"{at}artifactId"): [
            left.findtext(f"{at}artifactId") for left in element.iter(f"{at}exclusion")
        ]
        for element in tree.iter(f"{at}dependency")
    }
    assert found.keys() == {artifact.name for artifact in versions.SPARK_JARS}
    assert versions.TOKEN_PROVIDER in found["spark-sql-kafka-0-10_2.13"]
    assert found["mysql-connector-j"] == []


@pytest.mark.parametrize(
    ("jar", "stem"),
    [
        ("kafka-clients-3.9.2.jar", "kafka-clients"),
        ("spark-sql-kafka-0-10_2.13-4.2.0.jar", "spark-sql-kafka-0-10_2.13"),
        ("delta-spark_4.2_2.13-4.4.0.jar", "delta-spark_4.2_2.13"),
    ],
)
def test_the_name_without_version_decides_whether_spark_has_a_jar(jar: str, stem: str) -> None:
    assert maven.stem(Path(jar)) == stem


def test_a_damaged_jar_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "good-1.jar", "w") as archive:
        archive.writestr("a", "b")
    (tmp_path / "bad-2.jar").write_bytes((tmp_path / "good-1.jar").read_bytes()[:20])
    with pytest.raises(DownloadError, match=r"bad-2\.jar is damaged"):
        maven.check_zips(tmp_path)


def test_no_jar_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="copied no jar"):
        maven.check_zips(tmp_path)
