"""The expectations that follow from a table's schema. In: a TableSchema. Out: GX expectations, in a fixed order.

The row count is compared with the parameter `source_rows`, given when the suite runs, so that the suite itself
is the same at every run.
"""

from __future__ import annotations

import great_expectations.expectations as gxe
from great_expectations.expectations import Expectation

from contract.schema import Column, TableSchema

SOURCE_ROWS = "source_rows"
# A zero or partial date is NULL in the lake, also in a column that is NOT NULL in MySQL.
MAY_BECOME_NULL = {"date", "datetime", "timestamp"}


def from_schema(schema: TableSchema) -> list[Expectation]:
    expectations: list[Expectation] = [
        gxe.ExpectTableRowCountToEqual(value={"$PARAMETER": SOURCE_ROWS}),
        # A column that MySQL has dropped stays in the lake, so more columns are no fault.
        gxe.ExpectTableColumnsToMatchSet(column_set=[column.name for column in schema.columns], exact_match=False),
    ]
    expectations += [gxe.ExpectColumnValuesToNotBeNull(column=name) for name in _never_null(schema)]
    if len(schema.key) == 1:
        expectations.append(gxe.ExpectColumnValuesToBeUnique(column=schema.key[0]))
    elif schema.key:
        expectations.append(gxe.ExpectCompoundColumnsToBeUnique(column_list=list(schema.key)))
    expectations += [_members(column) for column in schema.columns if column.type == "enum" and column.members]
    return expectations


def _never_null(schema: TableSchema) -> list[str]:
    return [
        column.name
        for column in schema.columns
        if column.name in schema.key or not (column.nullable or column.type in MAY_BECOME_NULL)
    ]


def _members(column: Column) -> Expectation:
    # '' is MySQL's index 0: what a value outside the members became without strict mode.
    return gxe.ExpectColumnValuesToBeInSet(column=column.name, value_set=[*column.members, ""])
