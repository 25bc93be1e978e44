"""A suite in Python, for what JSON is too stiff for: here the same limits for several columns."""

import great_expectations.expectations as gxe

LIMITS = {"humid": (0, 100), "wind_dir": (0, 360), "visib": (0, 10)}


def expectations(schema):
    """`schema` is the table's (contract.schema.TableSchema): a column that was dropped is not asked for."""
    known = {column.name for column in schema.columns}
    return [
        gxe.ExpectColumnValuesToBeBetween(column=name, min_value=low, max_value=high)
        for name, (low, high) in LIMITS.items()
        if name in known
    ]
