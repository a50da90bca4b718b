"""Can others reach a task at this address?

    worker-1.example.com:2222        host:port; a name, an IPv4 address, or an IPv6 address in brackets
    [fd00::7]:2222

TensorFlow takes any text, and fails (or waits) when it dials. Cost: nothing is looked up, the text alone is judged.
Left out: whether the name exists and somebody answers, which only the doctor can say.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from tfdistedu.cluster.config.findings import Finding, shown

_LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


class HostPort(NamedTuple):
    """An address in its two parts; an IPv6 host is without its brackets."""

    host: str
    port: int

    @property
    def kind(self) -> str:
        """Where the host is: "loopback" (this machine), "wildcard" (every interface of it), or "real"."""
        name = self.host.lower().rstrip(".")
        if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
            return "loopback"
        ip = _ip(self.host)
        if ip is not None and ip.is_unspecified:
            return "wildcard"
        return "loopback" if ip is not None and ip.is_loopback else "real"

    @property
    def place(self) -> tuple[str, int]:
        """What must differ between two tasks: TensorFlow listens on *all* interfaces of a machine at its port."""
        ip = _ip(self.host)
        host = self.host.lower().rstrip(".") if ip is None else str(ip)
        return ("this machine" if self.kind != "real" else host, self.port)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def split(address: str) -> HostPort:
    """Take an address apart that `check` has let pass.

    Args:
        address: Such as "a:2222" or "[::1]:2222".

    Returns:
        Its host and port.

    """
    host, _, port = address.rpartition(":")
    return HostPort(host.removeprefix("[").removesuffix("]"), int(port))


def check(address: object, where: str) -> list[Finding]:
    """Judge one address.

    Args:
        address: What stands in the JSON.
        where: Its place there.

    Returns:
        What is wrong with it.

    """
    if not isinstance(address, str):
        inner = isinstance(address, list | dict)
        message = f"{shown(address)} is no text" + (", but one more level of brackets" if inner else "")
        return [Finding("address-not-text", where, message, 'A job is one flat list of texts: ["a:2222", "b:2222"].')]
    if address != address.strip() or re.search(r"\s", address):
        message = f"{shown(address)} has spaces in it" if address.strip() else f"{shown(address)} is empty"
        code = "address-has-spaces" if address.strip() else "address-empty"
        fixed = re.sub(r"\s", "", address)
        better = fixed if fixed and fixed.isprintable() else "host:port"
        return [Finding(code, where, message, f'Write "{better}".')]
    if not address:
        return [Finding("address-empty", where, "the address is empty", 'Write "host:port".')]
    if scheme := _SCHEME.match(address):
        rest = address[scheme.end() :].rstrip("/")
        message = f"{shown(address)} is a URL, and TensorFlow wants the host and the port alone"
        return [Finding("address-scheme", where, message, f"Write {shown(rest or 'host:2222')}.")]
    host, brackets, port = _parts(address)
    if host is None:
        message = f"{shown(address)} is an IPv6 address without brackets, so nobody knows where the port begins"
        head = address.rpartition(":")[0]
        likely = re.fullmatch(r"\d{4,5}", port, re.ASCII) and _ip(head)  # the last part may be either; 2222 is a port
        guess = f"[{head}]:{port}" if likely else f"[{address}]:2222"
        return [Finding("address-ipv6-brackets", where, message, f"Write {shown(guess)}.")]
    return [*_check_port(address, port, where), *_check_host(host, brackets, where)]


def _parts(address: str) -> tuple[str | None, bool, str | None]:
    """Return host, whether it stood in brackets, and port (`None`: there is none); host `None` is bare IPv6."""
    if address.startswith("["):
        inside, closed, after = address[1:].partition("]")
        return inside if closed else address, bool(closed), after[1:] if after.startswith(":") else None
    if address.count(":") > 1 and (_ip(address) or _ip(address.rpartition(":")[0])):
        return None, False, address.rpartition(":")[2]
    host, colon, port = address.rpartition(":")
    return (host, False, port) if colon else (address, False, None)


def _check_port(address: str, port: str | None, where: str) -> list[Finding]:
    if not port:
        base = address.rstrip(":")
        return [Finding("address-no-port", where, f"{shown(address)} has no port", f"Write {shown(f'{base}:2222')}.")]
    remedy = "Take a whole number from 1 to 65535 that is free on that machine, for example 2222."
    if not (port.isascii() and port.isdecimal()):
        return [Finding("address-port-wrong", where, f"the port {shown(port)} is no whole number", remedy)]
    if len(port) > 9 or int(port) > 65535:
        return [Finding("address-port-wrong", where, f"there is no port {port[:12]}: the last is 65535", remedy)]
    return []  # port 0 is a question of the whole cluster: a task that is alone may have any


def _check_host(host: str, brackets: bool, where: str) -> list[Finding]:
    remedy = "Write a host name (letters, digits, hyphens, dots), an IPv4 address, or an IPv6 address in brackets."
    if brackets:
        bare = host.partition("%")[0]  # fe80::1%eth0: which interface
        ok = _ip(bare) is not None and ":" in bare
        return [] if ok else [Finding("host-wrong", where, f"[{shown(host)[1:-1]}] is no IPv6 address", remedy)]
    if not host:
        return [Finding("host-wrong", where, "there is no host before the port", remedy)]
    if _ip(host):
        return []
    if re.fullmatch(r"[\d.]+", host):
        message = (
            f"{shown(host)} looks like an IPv4 address and is none: four numbers from 0 to 255, without leading zeros"
        )
        return [Finding("host-wrong", where, message, remedy)]
    name = host.removesuffix(".")
    labels = name.split(".")
    if len(name) <= 253 and all(_LABEL.fullmatch(label) for label in labels):
        return []
    if len(name) <= 253 and all(_LABEL.fullmatch(label.replace("_", "a")) for label in labels):
        message = f"the host {shown(host)} has an underscore, which host names must not have: some resolvers refuse it"
        remedy = f"Call it {shown(host.replace('_', '-'))} if you can, or write its IP address."
        return [Finding("host-underscore", where, message, remedy, is_error=False)]
    return [Finding("host-wrong", where, f"{shown(host)} is no host name", remedy)]
