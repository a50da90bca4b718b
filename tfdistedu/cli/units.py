"""How commands read sizes, and write times."""

from __future__ import annotations

import re

from tfdistedu.errors import BadInput

_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def read_bytes(text: str, option: str) -> float:
    """Read a size like "25MB" or "64 KiB".

    Args:
        text: What was written.
        option: The option, for the message.

    Returns:
        Bytes.

    Raises:
        BadInput: It is no size, or one beyond 10^18 bytes.

    Example:
        >>> read_bytes("64 KiB", "--bytes"), read_bytes("25MB", "--bytes")
        (65536.0, 25000000.0)

    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:e\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS:
        raise BadInput(
            f"{option} {text!r}: write a number of bytes, or one with kB, MB, GB, KiB, MiB or GiB behind it."
        )
    value = float(match[1]) * _UNITS[match[2]]
    if not 0 <= value <= 1e18:
        raise BadInput(f"{option} {text!r}: a message has 0 to 10^18 bytes.")
    return value


def in_time(seconds: float) -> str:
    """Write a time with three digits.

    Args:
        seconds: The time.

    Returns:
        Such as "1.23 ms".

    Example:
        >>> in_time(0.00123), in_time(15e-6)
        ('1.23 ms', '15 us')

    """
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds / 1e-9:.3g} ns"
