"""The SQL by which a server itself writes a value as the stream does."""

from __future__ import annotations

# MariaDB's JSON_QUOTE escapes these as MySQL's does, but for the capital letters in their numbers.
CAPITAL = [code for code in range(32) if f"{code:02x}" != f"{code:02X}" and chr(code) not in "\n\f\r"]
SHORT = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
ESCAPES = SHORT | {chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in SHORT}  # the backslash first

base64 = "replace(to_base64({}),char(10 using utf8mb4),'')".format  # in one line


def char(x: str) -> str:
    return f"cast({x} as char character set utf8mb4)"


def char_of(x: str, length: int) -> str:
    """Where the server counts too few characters for a number's text, one that it puts into a temporary table (a
    derived table that it does not merge) is cut to those without a word: a DOUBLE by one, a DECIMAL(9,9) by its last
    digit."""
    return f"cast({x} as char({length}) character set utf8mb4)"


def signed(text: str) -> str:
    """A float's text whose minus zero is a float as well: readers of JSON take `-0` for an integer, without sign."""
    return f"if({text} = '-0', '-0.0', {text})"


def quote(x: str) -> str:
    return f"json_quote({char(x)})"


def quote_in_mariadb(x: str) -> str:
    """Only a text with one of the characters in question takes the long way, each escape by itself."""
    text = escaped = char(x)
    for plain, escape in ESCAPES.items():
        escaped = f"replace({escaped}, {_literal(plain)}, {_literal(escape)})"
    found = " or ".join(f"locate({_literal(chr(code))}, {text})" for code in CAPITAL)
    mark = _literal('"')
    return f"if({found}, concat({mark}, {escaped}, {mark}), json_quote({text}))"


def _literal(text: str) -> str:
    """Compared byte by byte: other collations pass over control characters."""
    return f"_utf8mb4 x'{text.encode().hex()}' collate utf8mb4_bin"


def elements(x: str) -> str:
    """The array of a VECTOR's floats, made of their bits: the server's own text has six digits of each. What the
    subqueries name is no column's name: theirs would hide it."""
    at, bits = "headrace_place", "headrace_bits"
    zeros = f"concat('[0', repeat(',0', length({x}) div 4 - 1), ']')"
    places = f"json_table({zeros}, '$[*]' columns ({at} for ordinality)) n"
    number = f"cast(conv(hex(reverse(unhex(substr(hex({x}), 8 * {at} - 7, 8)))), 16, 10) as unsigned)"
    exponent, fraction = f"({bits} >> 23 & 255)", f"({bits} & 8388607)"
    size = f"if({exponent}, ({fraction} | 8388608) * pow(2, {exponent} - 150.0), {fraction} * pow(2, -149))"
    text = signed(char(f"if({bits} >> 31, -1e0, 1e0) * {size}"))
    listed = f"group_concat({text} order by {at} separator ',')"
    made = f"(select concat('[', {listed}, ']') from (select {at}, {number} as {bits} from {places}) f)"
    return f"if({x} is null, null, {made})"
