"""Expectations about the lake's tables, made from their schemas and from files that a user adds."""
