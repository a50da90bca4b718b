"""What is this code, or what does this log say?

    explain_code("address-no-port")    -> the kind of finding, or the message, of that name
    explain_log(text)                  -> each known message that stands in it, with its first line

    log line 212: ... Unable to find the relevant tensor remote_handle ...
        peer-unreachable: one task cannot reach another.  Cause ... Remedy ...

Cost: one search per known text. Left out: messages that are clear as they stand, and everything that no test has seen
TensorFlow write.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from tfdistedu.cluster.config.catalogue import KINDS
from tfdistedu.cluster.config.findings import Kind
from tfdistedu.cluster.known_messages import MESSAGES, Message
from tfdistedu.cluster.symptoms import SYMPTOMS
from tfdistedu.errors import BadInput

BY_CODE: dict[str, Kind | Message] = {
    **KINDS,
    **{kind.code: kind for kind in SYMPTOMS},
    **{message.code: message for message in MESSAGES},
}


@dataclass(frozen=True)
class Explained:
    """A known message in a log.

    Attributes:
        message: What it means.
        line: The line where it stands first, from 1.
        text: That line, cut.
        count: On how many lines it stands.

    """

    message: Message
    line: int
    text: str
    count: int

    def as_json(self) -> dict:
        """Return it by name, as `--json` writes it.

        Returns:
            `code`, `line`, `text`, `count`, `title`, `cause`, `remedy`.

        """
        m = self.message
        found = {"code": m.code, "line": self.line, "text": self.text, "count": self.count}
        return found | {"title": m.title, "cause": m.cause, "remedy": m.remedy}


def explain_code(code: str) -> Kind | Message:
    """Look up one code.

    Args:
        code: Such as "address-no-port" or "peer-unreachable".

    Returns:
        Its entry of the catalogue.

    Raises:
        BadInput: There is no such code; the message names the nearest.

    Example:
        >>> explain_code("hosts-mixed").title
        'localhost beside real hosts'

    """
    name = code.strip().strip("[]").lower()
    if name in BY_CODE:
        return BY_CODE[name]
    near = difflib.get_close_matches(name[:60], BY_CODE, n=1)
    hint = f"Did you mean {near[0]}?" if near else "`tfdistedu explain` without a word lists all."
    raise BadInput(f"explain: there is no code and no file {code!r}. {hint}")


def explain_log(text: str) -> list[Explained]:
    """Find the known messages of a log.

    Args:
        text: A log, a traceback, or one line of either.

    Returns:
        One entry a message: causes first, each in the order of its first line, then echoes.

    Example:
        >>> [found.message.code for found in explain_log("ValueError: `task_type` 'chief' not found in cluster_spec.")]
        ['task-type-not-valid']

    """
    lines = text.splitlines()
    found = []
    for message in MESSAGES:
        texts = message.texts + message.older
        if not any(words in text for words in texts):
            continue
        at = [number for number, line in enumerate(lines, 1) if any(words in line for words in texts)]
        found.append(Explained(message, at[0], _cut(lines[at[0] - 1]), len(at)))
    return sorted(found, key=lambda one: (one.message.is_echo, one.line))


def _cut(line: str, most: int = 200) -> str:
    line = "".join(c if c.isprintable() else " " for c in line).strip()
    return line if len(line) <= most else f"{line[:most]}..."
