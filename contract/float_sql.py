"""The text of a FLOAT or DOUBLE by which it is hashed, the same in MySQL and in Spark: two texts are equal exactly when
the stored values are, minus zero and zero among the others.

Neither side writes the other's decimal digits, and neither has the bits. Both have the arithmetic, and all of this is
exact: a value is m * 2^(e - 52) with m an integer, of 53 bits but in subnormal values; scaling by a power of two loses
nothing (IEEE 754-2019, 3.3), and both sides' pow(2, e) is exact where that can be represented. `log2` alone is rounded,
so its exponent may be one off, and is put right by the fraction, which is in [1, 2).
"""

from __future__ import annotations

SMALLEST, GREATEST = -1074, 1023  # exponents of a double; of a subnormal one all is in the fraction
UNIT = "4503599627370496e0"  # 2^52


def source_text(x: str) -> str:
    """SQL of MySQL and MariaDB; `x`: of a DOUBLE."""
    return _text(x, "cast({} as char character set utf8mb4)", "cast({} as signed)", "-0")


def spark_text(x: str) -> str:
    """SQL of Spark; `x`: of a FLOAT or DOUBLE. NaN and infinities, which MySQL cannot hold, have texts of their own."""
    x = f"cast({x} as double)"
    finite = _text(x, "cast({} as string)", "cast({} as bigint)", "-0.0")
    return f"if(isnan({x}) or abs({x}) = cast('Infinity' as double), cast({x} as string), {finite})"


def _text(x: str, text: str, integer: str, minus_zero: str) -> str:
    size = f"abs({x})"
    near = f"greatest(least(floor(log2({size})), {GREATEST}), {SMALLEST})"
    part = f"({size} / pow(2, {near}))"
    step = f"if({part} >= 2e0, 1, if({part} < 1e0, -1, 0))"
    exponent, fraction = f"({near} + {step})", f"({part} / pow(2, {step}))"
    shown = [text.format(integer.format(made)) for made in (exponent, f"{fraction} * {UNIT}")]
    zero = f"if({text.format(x)} = '{minus_zero}', '-0', '0')"
    return f"if({x} = 0e0, {zero}, concat(if({x} < 0e0, '-', ''), {shown[1]}, ' ', {shown[0]}))"
