"""Jars by Maven: a generated pom, `dependency:copy-dependencies`, every jar opened once before it counts."""

from __future__ import annotations

import importlib.util
import logging
import re
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from stack import versions
from stack.errors import StackError
from stack.fetch import DownloadError, install, run_client
from stack.versions import Artifact

log = logging.getLogger("stack")
HINT = "Install Maven and a JDK 17, and see that Maven reaches its repository (its settings.xml names proxies)."


def kafka_jars() -> Path:
    """The folder of the broker's jars."""
    return jars(f"kafka-{versions.KAFKA}", versions.KAFKA_JARS)


def spark_jars_folder() -> Path:
    """The folder of the jars that the Spark jobs need and pyspark lacks."""
    name = f"spark-jars-{versions.SPARK}-{versions.DELTA}-{versions.MYSQL_CONNECTOR}"
    return jars(name, versions.SPARK_JARS, lacking_in=pyspark_folder())


def spark_s3_jars_folder() -> Path:
    """The folder of the jars that a lake on S3 needs beside those."""
    name = f"spark-s3-jars-{versions.HADOOP}-{versions.AWS_SDK}"
    return jars(name, versions.SPARK_S3_JARS, lacking_in=pyspark_folder())


def spark_jars() -> list[Path]:
    """These jars, one by one, for `--jars` of spark-submit."""
    return sorted(spark_jars_folder().glob("*.jar"))


def pyspark_folder() -> Path:
    found = importlib.util.find_spec("pyspark")  # to import it takes seconds
    if found is None or found.origin is None:
        raise StackError("pyspark is not installed, whose jars decide which ones are fetched", "Run `make install`.")
    return Path(found.origin).parent / "jars"


def jars(name: str, artifacts: Sequence[Artifact], lacking_in: Path | None = None) -> Path:
    """`<cache>/<name>` with the artifacts and what they need, less what the folder `lacking_in` has."""

    def fill(folder: Path) -> dict[str, str]:
        log.info("%s: fetching by Maven", name)
        copy(name, artifacts, folder)
        if lacking_in is not None:
            drop(folder, {stem(jar) for jar in lacking_in.glob("*.jar")})
        return {artifact.name: artifact.version for artifact in artifacts}

    return install(name, fill)


def copy(name: str, artifacts: Sequence[Artifact], folder: Path) -> None:
    """Copies the jars; a damaged local repository is passed by with a fresh one of our own."""
    pom = folder / "pom.xml"
    pom.write_text(pom_text(artifacts))
    goal = f"org.apache.maven.plugins:maven-dependency-plugin:{versions.MAVEN_DEPENDENCY_PLUGIN}:copy-dependencies"
    command = ["mvn", "-B", "-ntp", "-q", "-f", str(pom), goal, f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    try:
        run_client(name, command, HINT)
        check_zips(folder)
    except DownloadError as error:
        log.warning("%s: again with an empty local Maven repository, because %s", name, error)
        with tempfile.TemporaryDirectory(prefix=".maven-", dir=folder.parent) as empty:
            run_client(name, [*command, "-Dmdep.overWriteReleases=true", f"-Dmaven.repo.local={empty}"], HINT)
        check_zips(folder)


def check_zips(folder: Path) -> None:
    found = sorted(folder.glob("*.jar"))
    if not found:
        raise DownloadError(f"Maven copied no jar into {folder}", HINT)
    for jar in found:
        try:
            with zipfile.ZipFile(jar) as archive:
                broken = archive.testzip()
        except zipfile.BadZipFile:
            broken = "its directory"
        if broken:
            raise DownloadError(f"the downloaded {jar.name} is damaged ({broken})", HINT)


def drop(folder: Path, stems: set[str]) -> None:
    for jar in folder.glob("*.jar"):
        if stem(jar) in stems:
            jar.unlink()


def stem(jar: Path) -> str:
    """`kafka-clients` of `kafka-clients-3.9.2.jar`: two versions of one library must not meet on a class path."""
    return re.sub(r"-\d[\w.]*\.jar$", "", jar.name)


def pom_text(artifacts: Sequence[Artifact]) -> str:
    dependencies = "\n".join(dependency(artifact) for artifact in artifacts)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>headrace</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>\n{dependencies}\n</dependencies></project>\n"
    )


def dependency(artifact: Artifact) -> str:
    def coordinates(group: str, name: str) -> str:
        return f"<groupId>{escape(group)}</groupId><artifactId>{escape(name)}</artifactId>"

    excluded = "".join(f"<exclusion>{coordinates(*pair.split(':'))}</exclusion>" for pair in artifact.exclude)
    return (
        f"<dependency>{coordinates(artifact.group, artifact.name)}<version>{escape(artifact.version)}</version>"
        f"<exclusions>{excluded}</exclusions></dependency>"
    )
