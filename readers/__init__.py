"""The lake without Spark: its tables, their history and their past, in SQL (DuckDB), over delta-rs.

In: the pipeline file and the lake's folder. Imports contract/ alone of the product.
"""
