"""Why can this text not be read as JSON?

TensorFlow answers a TF_CONFIG that is not JSON with a bare `JSONDecodeError`, which names neither the variable nor the
reason. Most of these texts were right once, and a shell, a `.env` file, an editor or `str(dict)` has changed them on
the way; the traces that each leaves are known.

    text -> json.loads -> a dictionary            done
                       -> an error -> which trace of damage is there? -> a finding with the text as it should be

Cost: one pass over the text, and for a damaged one a few more. A guess is offered as a remedy only if it *is* JSON.
Left out: what the JSON says.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter

from tfdistedu.cluster.config.findings import Finding, shown

# Linux hands a program no longer string than 32 pages, with the name, the "=" and the closing zero.
_LONGEST_VARIABLE = 32 * 4096 - len("TF_CONFIG=") - 1
_DEEPEST = 50  # levels of brackets; three are needed
_ANEW = "An object, in it the jobs, in these the addresses: write it anew with `json.dumps`."
_MOST_REPAIRED = 20_000  # characters of a damaged text that guesses are tried on

_CURLY = str.maketrans("“”„‟‘’‚‛″", '""""' + "''''" + '"')


def read(text: str) -> tuple[dict | None, list[Finding]]:
    """Read the text as a JSON object.

    Args:
        text: The value of TF_CONFIG.

    Returns:
        The object, or `None`, and what is wrong with the text.

    """
    found: list[Finding] = []
    if len(text) > _LONGEST_VARIABLE:
        found.append(
            Finding(
                "too-large",
                "the text",
                f"it has {len(text)} characters; Linux hands a program at most {_LONGEST_VARIABLE} in this variable",
                "Set it inside the program, or give each task only the jobs that it talks to.",
                is_error=False,
            )
        )
    twice: list[str] = []

    def pairs(items: list[tuple[str, object]]) -> dict:
        counts = Counter(key for key, _ in items)
        twice.extend(key for key, count in counts.items() if count > 1)
        return dict(items)

    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        return None, [*found, _too_deep()]
    except ValueError as error:  # JSONDecodeError, and a number with thousands of digits
        return None, [*found, _why(text, error)]
    if _deeper_than(_DEEPEST, data):
        return None, [*found, _too_deep()]
    for key in dict.fromkeys(twice):
        found.append(
            Finding(
                "json-duplicate-key",
                shown(key),
                "this key stands twice in one object: the last one counts, and the first is forgotten without a word",
                "Keep one; put all addresses of a job into its one list.",
                is_error=False,
            )
        )
    if isinstance(data, str):
        return None, [*found, _wrapped(text, data)]
    if not isinstance(data, dict):
        kind = {list: "a list", bool: "true or false", type(None): "null"}.get(type(data), "a number")
        message = f"it is {kind}, and TF_CONFIG is an object with the keys cluster and task"
        remedy = 'Write {"cluster": {...}, "task": {...}}.'
        return None, [*found, Finding("json-not-an-object", "the text", message, remedy)]
    return data, found


def _too_deep() -> Finding:
    return Finding("json-broken", "the text", "its lists or objects lie too deep in each other", _ANEW)


def _deeper_than(levels: int, data: object) -> bool:
    """Look at one level after the other: Python's stack is not as deep as a text can be."""
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(levels):
        lists = [list(value.values()) if isinstance(value, dict) else value for value in level if value]
        level = [inner for values in lists for inner in values if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _quoted(text: str) -> str:
    """Return the remedy for a text that lost its quotes on the way."""
    return f"In a shell, put single quotes around all of it: export TF_CONFIG='{_cut(text)}'"


def _cut(text: str, most: int = 200) -> str:
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if len(text) <= most else f"{text[:most]}..."


def _wrapped(text: str, inner: str) -> Finding:
    message = "the whole text stands in quotes, which belong to a shell or a file and came into the value"
    remedy = f"Take them away: {_cut(inner.strip())}" if inner.strip() else "Write {} for a single process."
    return Finding("json-wrapped-in-quotes", "the text", message, remedy)


def _why(text: str, error: ValueError) -> Finding:
    """Find the trace of what damaged the text."""
    stripped = text.strip()
    if not stripped:
        message = "it is empty, and TensorFlow cannot read that; an empty variable is not an unset one"
        return Finding("json-empty", "the text", message, "Unset it: `unset TF_CONFIG`.")
    if text.startswith("\ufeff"):
        message = "it begins with a byte order mark, which an editor or PowerShell put there"
        remedy = "Save the file as UTF-8 without BOM, or read it with encoding='utf-8-sig'."
        return Finding("json-bom", "the text", message, remedy)
    if stripped[0] in "'`" and stripped[-1] == stripped[0] and len(stripped) > 1:
        return _wrapped(text, stripped[1:-1])
    if re.fullmatch(r"[\w./\\:~@-]+", stripped):
        message = f"{_cut(stripped, 60)} is a name, and TF_CONFIG holds the JSON itself"
        remedy = f'For a file: export TF_CONFIG="$(cat {_cut(stripped, 60)})"'
        return Finding("json-is-a-name", "the text", message, remedy)
    if stripped[0] == "$":
        message = (
            f"{_cut(stripped, 60)} was not replaced: single quotes, a service file or a Dockerfile kept it as it is"
        )
        return Finding("json-not-expanded", "the text", message, "Write the JSON itself, or set it where a shell runs.")
    return _damaged(stripped) or _at(text, error)


def _damaged(text: str) -> Finding | None:
    """Try what is known to happen to JSON; a guess counts if it gives JSON again."""
    text = text[:_MOST_REPAIRED]
    if any(mark in text for mark in "“”„‟″") and _is_json(plain := text.translate(_CURLY)):
        message = "its quotes are curly, as word processors and chats make them"
        return Finding("json-curly-quotes", "the text", message, f"Write straight ones: {_cut(plain)}")
    if _is_json(plain := text.replace('\\"', '"')):
        message = "its quotes have backslashes before them, which belong to another language or file"
        return Finding("json-wrapped-in-quotes", "the text", message, f"Take them away: {_cut(plain)}")
    if _is_json(plain := re.sub(r",(\s*[\]}])", r"\1", text)):
        place = re.search(r",\s*[\]}]", text).start()
        where = f"line {text.count(chr(10), 0, place) + 1}"
        message = "a comma stands before a closing bracket, which Python allows and JSON does not"
        return Finding("json-trailing-comma", where, message, f"Take it away: {_cut(plain)}")
    as_python = _python(text)
    if as_python is not None:
        message = "it is a Python dictionary: JSON has double quotes only, and writes null, true and false"
        remedy = f"Make it with `json.dumps(...)`, not with `str(...)`: {_cut(as_python)}"
        return Finding("json-single-quotes", "the text", message, remedy)
    bare = re.sub(r"\[[^\[\]{}\"]*\]", lambda found: json.dumps(found[0][1:-1].replace(" ", "").split(",")), text)
    bare = re.sub(r'"[^"]*"|[^\s{}\[\],:"]+', _quote_word, bare)
    if bare != text and _is_json(bare):
        message = "its double quotes are gone: a shell takes them away where nothing protects them"
        return Finding("json-unquoted", "the text", message, _quoted(bare))
    return None


def _quote_word(match: re.Match) -> str:
    word = match[0]
    return word if word[0] == '"' or (word.isascii() and word.isdigit()) else json.dumps(word)


def _python(text: str) -> str | None:
    """Return a text that is a Python dictionary as JSON."""
    if len(text) > _MOST_REPAIRED or "{" not in text:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's opinion of backslashes in somebody's text
            value = ast.literal_eval(text)
        return json.dumps(value) if isinstance(value, dict) else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _at(text: str, error: ValueError) -> Finding:
    """Say where reading stopped, and show the place."""
    remedy = "Make it with `json.dumps`, or compare it with the output of `tfdistedu run --print-config`."
    if not isinstance(error, json.JSONDecodeError):
        return Finding("json-broken", "the text", "it holds a number with thousands of digits", _ANEW)
    if error.pos >= len(text.rstrip()):
        message = "it ends too early: a bracket or a quote is not closed; a shell or a file may have cut it"
        return Finding("json-cut-short", f"line {error.lineno}, column {error.colno}", message, remedy)
    around = _cut(text[max(0, error.pos - 20) : error.pos]) + " >>> " + _cut(text[error.pos : error.pos + 20])
    reason = error.msg[0].lower() + error.msg[1:]
    where = f"line {error.lineno}, column {error.colno}"
    return Finding("json-broken", where, f"it is not JSON: {reason}, here: {around}", remedy)
