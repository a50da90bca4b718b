"""What is a finding, and how does it guess what was meant?

A finding names one thing that is wrong: a code that stays the same for ever (tests and scripts may rely on it), where,
why, and what to do. Its kind, with an example that shows it and the same example mended, stands in the catalogue.

    cluster.worker[1]: "b" has no port.   Write "b:2222".   [address-no-port]
    ---- where ------  --- message ----   --- remedy ----    ---- code -----

Left out: the checks themselves.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from tfdistedu.cluster.config.model import JOBS, ClusterConfig


@dataclass(frozen=True)
class Kind:
    """A kind of finding, as the catalogue lists it.

    Attributes:
        code: Its name, such as "address-no-port".
        severity: "error" (it cannot work), "warning" (it can), or "depends" (the sentence `why` says on what).
        title: What is wrong, in a few words.
        why: What TensorFlow does with it, and why that is not what one wants.
        example: A TF_CONFIG that shows it.
        mended: The same without it.
        strategy: For which strategy the example is meant; `None` is any.

    """

    code: str
    severity: str
    title: str
    why: str
    example: str
    mended: str
    strategy: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: The kind, such as "address-no-port".
        where: The place, such as `cluster.worker[1]` or `line 1, column 14`.
        message: What is wrong there, and why.
        remedy: What to write or do instead.
        is_error: Whether it cannot work as it stands; else it is a warning.

    """

    code: str
    where: str
    message: str
    remedy: str
    is_error: bool = True

    def as_json(self) -> dict[str, str]:
        """Return the four texts by name, as `--json` writes them.

        Returns:
            `code`, `where`, `message`, `remedy`.

        """
        return {"code": self.code, "where": self.where, "message": self.message, "remedy": self.remedy}


@dataclass(frozen=True)
class Parsed:
    """What came of a text.

    Attributes:
        config: The config; `None` exactly when there are errors.
        findings: Everything found, in the order of the text.

    """

    config: ClusterConfig | None
    findings: tuple[Finding, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that must be mended before anything can work."""
        return tuple(finding for finding in self.findings if finding.is_error)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that can work, and are seldom meant."""
        return tuple(finding for finding in self.findings if not finding.is_error)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all findings."""
        return tuple(finding.code for finding in self.findings)


# What people call the four jobs; TensorFlow 1 programs and other launchers left these behind.
_ALSO_CALLED = {
    "master": "chief",
    "coordinator": "chief",
    "leader": "chief",
    "launcher": "chief",
    "parameter_server": "ps",
    "param_server": "ps",
    "server": "ps",
    "eval": "evaluator",
    "slave": "worker",
    "node": "worker",
}


def meant(word: str, known: Iterable[str] = JOBS) -> str | None:
    """Guess which known name somebody meant.

    Args:
        word: What was written: another case, a plural, a slip, another program's name.
        known: The names that exist.

    Returns:
        The likeliest, or `None`.

    Example:
        >>> [meant(word) for word in ("Workers", "ps_hosts", "master", "cheif", "banana")]
        ['worker', 'ps', 'chief', 'chief', None]

    """
    known = tuple(known)
    simple = word.strip().lower().replace("-", "_").removesuffix("_hosts").removesuffix("_host")
    simple = simple.removesuffix("_list").removesuffix("_tasks")
    for guess in (simple, simple.removesuffix("s")):
        guess = _ALSO_CALLED.get(guess, guess)
        if guess in known:
            return guess
    near = difflib.get_close_matches(simple[:40], known, n=1, cutoff=0.7)
    return near[0] if near else None


def did_you_mean(word: str, known: Iterable[str] = JOBS) -> str:
    """Say what was meant, or what there is.

    Args:
        word: What was written.
        known: The names that exist.

    Returns:
        A sentence.

    """
    known = tuple(known)
    guess = meant(word, known)
    return f'Did you mean "{guess}"?' if guess else f"There are {', '.join(known)}."


def shown(value: object, most: int = 60) -> str:
    """Show a value of the text in a message, on one line and not too long.

    Args:
        value: Anything that JSON holds.
        most: The most characters.

    Returns:
        JSON of it, cut in the middle if need be; control characters as escapes.

    """
    import json

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # deeper than Python's stack, or a number of thousands of digits
        return f"a very large {type(value).__name__}"
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if len(text) <= most else f"{text[: most - 15]}...{text[-12:]}"
