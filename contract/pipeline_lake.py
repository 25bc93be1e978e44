"""The pipeline file's section `lake`: where the tables are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from contract import CHECKOUT
from contract.mistake import MistakeError
from contract.pipeline_kafka import Misfit, Section
from contract.schema import TableSchema, Unfit
from contract.types import may_not_fit

if TYPE_CHECKING:
    from contract.pipeline import Pipeline

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
S3A = "s3a://"
IN_S3 = re.compile(r"s3a://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/[^?#]*)?")
OTHER_S3 = re.compile(r"s3n?://")
HERE = {
    "access.key": "key", "secret.key": "secret", "session.token": "token", "endpoint": "endpoint_url",
    "endpoint.region": "region", "path.style.access": "path_style", "create.conditional.enabled": "conditional_writes",
}  # fmt: skip


class S3(Section):
    """How the store of an `s3a://` lake is reached. Without `key` and `secret` the usual places are asked, where the
    jobs and the readers run: environment, role."""

    endpoint_url: str | None = Field(
        None,
        pattern=r"^https?://[^/@\s]+/?$",
        description="of a store other than Amazon's, such as https://s3.example.org",
    )
    region: str | None = Field(None, min_length=1)
    key: str | None = Field(None, min_length=1, repr=False, description="the access key's id, with secret")
    secret: str | None = Field(None, min_length=1, repr=False)
    token: str | None = Field(None, min_length=1, repr=False, description="of a session, beside key and secret")
    path_style: bool | None = Field(
        None, description="the bucket stands in the URL's path; left out: where endpoint_url is given"
    )
    conditional_writes: bool = Field(
        True,
        description="false: for a store that does not know If-None-Match or If-Match; its writer is guarded less then",
    )
    client: dict[str, str | bool | int] = Field(
        default_factory=dict, repr=False, description="further settings of Hadoop's client, each without its fs.s3a."
    )

    @field_validator("client")
    @classmethod
    def _not_elsewhere(cls, given: dict[str, str | bool | int]) -> dict[str, str | bool | int]:
        if wrong := sorted(set(given) & HERE.keys()):
            raise MistakeError(f"{wrong[0]} is not for here", f"write it as lake.s3.{HERE[wrong[0]]}")
        return given

    @property
    def in_path(self) -> bool:
        return self.endpoint_url is not None if self.path_style is None else self.path_style

    @property
    def of_region(self) -> str | None:
        """A store other than Amazon's takes any, and clients refuse to sign without one."""
        return self.region or ("us-east-1" if self.endpoint_url else None)

    @property
    def plain(self) -> bool:
        """Without TLS."""
        return bool(self.endpoint_url and self.endpoint_url.startswith("http://"))


class Lake(Section):
    path: str = Field("", min_length=1, description="folder, or URI; relative to the checkout")
    readers: Literal["modern", "compatible"] = Field(
        "modern", description="compatible: tables that are made from now on are without deletion vectors"
    )
    unrepresentable: Unfit = Field(
        "null", description="what becomes of a value that the lake's types cannot hold, such as a zero date"
    )
    s3: S3 = S3()

    @field_validator("unrepresentable", mode="before")
    @classmethod
    def _null(cls, given: object) -> object:
        return "null" if given is None else given  # as YAML reads it without quotes

    @field_validator("path")
    @classmethod
    def _path(cls, given: str) -> str:
        if given.lower().startswith("file:"):
            raise MistakeError("is a folder, which is written without a scheme", f"write /{given[5:].lstrip('/')}")
        if URI.match(given) and "://" not in given:
            raise MistakeError("is a URI that says no place", f"write {given.partition(':')[0]}:// and host and path")
        if OTHER_S3.match(given):
            raise MistakeError("Spark's own client of S3 is named s3a", f"write {S3A}{given.partition('://')[2]}")
        if given.startswith(S3A) and not IN_S3.fullmatch(given):
            raise MistakeError("is no bucket and folder", "write s3a://bucket/folder, the bucket in lower case letters")
        return given

    def lands(self, schema: TableSchema) -> TableSchema:
        """The table as this lake is to have it."""
        if self.unrepresentable == "null":
            return schema
        set_to = {"unfit": self.unrepresentable}
        columns = [c.model_copy(update=set_to) if may_not_fit(c) else c for c in schema.columns]
        return schema.model_copy(update={"columns": tuple(columns)})

    @property
    def place(self) -> str:
        """The folder or URI itself. Every part finds the same one, wherever it was started."""
        return (self.path if URI.match(self.path) else str(CHECKOUT / self.path)).rstrip("/")

    @property
    def bucket(self) -> str | None:
        """None where the lake is not on S3."""
        found = IN_S3.fullmatch(self.path)
        return found["bucket"] if found else None


def misfits(pipeline: Pipeline) -> Iterator[Misfit]:
    """What of the section does not go together."""
    lake, s3 = pipeline.lake, pipeline.lake.s3
    if s3 != S3() and lake.bucket is None:
        yield (
            ("lake", "s3"),
            "s3",
            "is of a lake on S3, and lake.path is none",
            "write path: s3a://bucket/folder, or remove s3",
        )
    # At the section: what is told at a key that `${...}` filled is told without words.
    if (s3.key is None) != (s3.secret is None):
        has, lacks = ("key", "secret") if s3.secret is None else ("secret", "key")
        yield ("lake", "s3"), "s3", f"has {has} without {lacks}", f"add {lacks}: ${{NAME}}, or leave both out"
    if s3.token is not None and s3.key is None:
        yield ("lake", "s3"), "s3", "has token without key and secret", "add them, or leave all three out"
