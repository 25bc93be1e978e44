"""The options of a table in an ALTER TABLE: they stand one behind the other, with commas between them or without."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.ddl.tokens import END, Token, Tokens, words

# MariaDB's engines may have more; such a one is no action that is known, either.
OPTIONS = words(
    "AUTOEXTEND_SIZE AUTO_INCREMENT AVG_ROW_LENGTH CHAR CHARACTER CHARSET CHECKSUM COLLATE COMMENT COMPRESSION "
    "CONNECTION DATA DEFAULT DELAY_KEY_WRITE ENCRYPTED ENCRYPTION ENCRYPTION_KEY_ID ENGINE ENGINE_ATTRIBUTE INDEX "
    "INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL "
    "ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES "
    "STORAGE TABLESPACE TABLE_CHECKSUM TRANSACTIONAL UNION"
)
OF_TWO_WORDS = ("CHAR", "CHARACTER", "DATA", "INDEX")  # CHARACTER SET, DATA DIRECTORY
LAST = ("PARTITION", "REMOVE")  # PARTITION BY, REMOVE PARTITIONING: behind all of them


def options(part: list[Token]) -> Iterator[str]:
    """The first word of each one, of a part that begins with one; and of what ends them."""
    tokens = Tokens(part, "")
    while (token := tokens.take()) is not END:
        if token.word == "DEFAULT":  # CHARACTER SET, COLLATE
            continue
        yield token.word
        if token.word in LAST:
            return
        if token.word in OF_TWO_WORDS:
            tokens.take()
        tokens.skip("=")
        _pass_value(tokens)


def _pass_value(tokens: Tokens) -> None:
    """A word, a text or a number, or a list in parentheses."""
    depth = 0
    while (token := tokens.take()) is not END:
        depth += (token.word == "(") - (token.word == ")")
        if depth == 0:
            return
