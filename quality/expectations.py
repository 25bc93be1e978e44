"""The expectations that follow from a table's schema. In: a TableSchema. Out: GX expectations, in a fixed order.

The row count is compared with the parameter `source_rows`, given when the suite runs, so that the suite itself
is the same at every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import great_expectations.expectations as gxe
from great_expectations.expectations import Expectation

from contract import types
from contract.lake_columns import holds
from contract.schema import Column, TableSchema

SOURCE_ROWS = "source_rows"
# A zero or partial date is NULL in the lake, also in a column that is NOT NULL in MySQL.
MAY_BECOME_NULL = {"date", "datetime", "timestamp"}
LIMITED = ("char", "varchar", "binary", "varbinary")
CLASSES = {
    "bigint": "LongType", "string": "StringType", "binary": "BinaryType", "boolean": "BooleanType", "date": "DateType",
    "timestamp": "TimestampType", "timestamp_ntz": "TimestampNTZType", "float": "FloatType", "double": "DoubleType",
    "decimal": "DecimalType", "struct": "StructType", "array": "ArrayType",
}  # fmt: skip


def from_schema(
    schema: TableSchema, checks: Mapping[str, str] | None = None, counted: bool = True, lacking: Sequence[str] = ()
) -> list[Expectation]:
    """`checks`: conditions of Spark SQL by the names of the constraints they come from; `counted`: whether
    `source_rows` will be given. Of what is `unasked`, and of columns that the lake is `lacking`, nothing but that the
    columns are there."""
    expectations: list[Expectation] = [gxe.ExpectTableRowCountToEqual(value={"$PARAMETER": SOURCE_ROWS})] * counted
    # A column that MySQL has dropped stays in the lake, so more columns are no fault.
    names = [_spelled(column.name) for column in schema.columns]
    expectations.append(gxe.ExpectTableColumnsToMatchSet(column_set=names, exact_match=False))
    there = without(schema, lacking)
    expectations += [_type(column) for column in there.columns]
    named = without(there, _unnamed(schema))
    expectations += [gxe.ExpectColumnValuesToNotBeNull(column=_spelled(name)) for name in _never_null(named)]
    keyed = not _key_unnamed(schema) and not {*schema.key} & {*lacking}
    if len(schema.key) == 1 and keyed:
        expectations.append(gxe.ExpectColumnValuesToBeUnique(column=_spelled(schema.key[0])))
    elif schema.key and keyed:
        expectations.append(gxe.ExpectCompoundColumnsToBeUnique(column_list=list(schema.key)))
    expectations += [_length(column) for column in named.columns if column.length and column.type in LIMITED]
    expectations += [_members(column) for column in named.columns if column.type == "enum" and column.members]
    expectations += [_check(name, condition) for name, condition in sorted((checks or {}).items())]
    return expectations


def _type(column: Column) -> Expectation:
    kind = types.of(column).spark
    type_ = CLASSES[kind.partition("(")[0].partition("<")[0]]
    if holds(kind, "bigint"):  # a column that was widened is so in the lake from the next change of a row on
        return gxe.ExpectColumnValuesToBeInTypeList(column=_spelled(column.name), type_list=[type_, CLASSES["bigint"]])
    return gxe.ExpectColumnValuesToBeOfType(column=_spelled(column.name), type_=type_)


def _never_null(schema: TableSchema) -> list[str]:
    return [
        column.name
        for column in schema.columns
        if column.name in schema.key or not (column.nullable or column.type in MAY_BECOME_NULL)
    ]


def _length(column: Column) -> Expectation:
    """Of characters, or of bytes; both sides count them so."""
    return gxe.ExpectColumnValueLengthsToBeBetween(column=_spelled(column.name), max_value=column.length)


def _members(column: Column) -> Expectation:
    # '' is MySQL's index 0: what a value outside the members became without strict mode.
    return gxe.ExpectColumnValuesToBeInSet(column=_spelled(column.name), value_set=[*column.members, ""])


def _check(name: str, condition: str) -> Expectation:
    """A row breaks a constraint that is false for it; NULL is not."""
    escaped = condition.replace("{", "{{").replace("}", "}}")  # the query is a format of Python's
    query = f"SELECT * FROM {{batch}} WHERE NOT ({escaped})"
    return gxe.UnexpectedRowsExpectation(unexpected_rows_query=query, description=f"CHECK {name}")


def unasked(schema: TableSchema) -> list[str]:
    """What is not looked at, since Great Expectations takes parts of the columns' names for signs of Spark's."""
    return [f"column {name}" for name in _unnamed(schema)] + ["the key"] * _key_unnamed(schema)


def _unnamed(schema: TableSchema) -> list[str]:
    return [column.name for column in schema.columns if column.name == "*" or "`" in column.name]


def _key_unnamed(schema: TableSchema) -> bool:
    """Several columns at once are not asked for by `_spelled` names."""
    return bool({*_unnamed(schema)} & {*schema.key}) or (
        len(schema.key) > 1 and any("." in name for name in schema.key)
    )


def _spelled(name: str) -> str:
    """As Great Expectations lists the columns of a table of Spark's."""
    return f"`{name}`" if "." in name else name


def spelled_as(schema: TableSchema, names: Iterable[str]) -> TableSchema:
    """The schema with its columns' names in the letters of `names`, for Great Expectations tells `V` from `v`: the lake
    keeps the letters of before where the source changed no more of a name."""
    letters = {name.lower(): name for name in names}
    columns = [c.model_copy(update={"name": letters.get(c.name.lower(), c.name)}) for c in schema.columns]
    key = tuple(letters.get(name.lower(), name) for name in schema.key)
    return schema.model_copy(update={"columns": tuple(columns), "key": key})


def without(schema: TableSchema, names: Iterable[str]) -> TableSchema:
    """The schema without some columns."""
    left_out = set(names)
    return schema.model_copy(update={"columns": tuple(c for c in schema.columns if c.name not in left_out)})
