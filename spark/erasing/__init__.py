"""The erasure of rows by their key, for data-protection requests.

`erasures` is what the lake remembers of them, so that nothing of before comes back; `traces` finds and removes what is
in the lake's tables; `past` removes what their files and logs still have of it; `topics` says how long Kafka does, and
sends tombstones; `source` asks whether the source still has the row; `work` is the order of it all; `record` is what is
written down for people.
"""
