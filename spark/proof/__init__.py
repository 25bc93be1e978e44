"""The proof that the lake's tables are what the source has, while writes go on.

`splits` puts a table's rows into chunks, the same in both; `reading` asks the source for each chunk's count and
checksum, by the statements of `chunk_reads`; `waiting` lets the lake come as far; `boundary` finds the commit at which
the lake is what was read; `pinning` goes down to rows and columns where there is none; `finding` has what is known of a
table and its line of the report; `judged` says by what the expectations judge it; `noted` keeps all that when the check
ends, and `differences` has what was found until the next.
"""
