"""What would a browser fetch from another host? Find it in a page, a style sheet, a script, a drawing.

A plain link `<a href>` is followed by a reader, not by the browser: it is allowed. All else that names a host is not.
A script holds addresses as strings; which of these are ever loaded cannot be read off. So none may be there but XML
namespaces, which name and never load, and what stands in comments. (`docs/hooks.py` empties those of the theme.)
"""

from __future__ import annotations

import re

from tests.site.html import Page

# Attributes whose value a browser loads, whatever the element; `href` loads in all elements but <a> (and <area>).
LOADING = ("src", "srcset", "imagesrcset", "poster", "data", "background", "action", "formaction", "manifest", "ping")
LOADING += ("codebase", "archive", "classid", "longdesc", "profile", "xlink:href", "icon", "lowsrc", "dynsrc", "cite")
_HOST = re.compile(r"(?:^|[\s,'\"(=])((?:https?|wss?|ftp):)?//[\w\[]", re.I)
_CSS_LOADS = re.compile(r"url\(\s*['\"]?\s*([^'\")]+)|@import\s+['\"]([^'\"]+)", re.I)
_SCRIPT_STRING = re.compile(r"""["'`]((?:(?:https?|wss?):/|/(?=/[\w-]+\.\w))/[^"'`\s]+)""", re.I)
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
NAMESPACES = ("http://www.w3.org/",)


def names_a_host(address: str) -> bool:
    """Tell whether an address (or a srcset of several, or a refresh) goes to another host."""
    return bool(_HOST.search(address.strip()))


def in_style(text: str) -> list[str]:
    """Find what a style sheet loads from another host."""
    found = [a or b for a, b in _CSS_LOADS.findall(_COMMENT.sub("", text))]
    return [address for address in found if names_a_host(address)]


def in_script(text: str) -> list[str]:
    """Find addresses of other hosts in a script's strings."""
    return [a for a in _SCRIPT_STRING.findall(_COMMENT.sub("", text)) if not a.startswith(NAMESPACES)]


def in_page(page: Page) -> list[str]:
    """Find what a page loads from another host, or announces that it will (preconnect, dns-prefetch, og:image)."""
    found = []
    for element in page.elements:
        for key, value in element.attributes.items():
            loads = key in LOADING or (key == "href" and element.name not in ("a", "area"))
            loads = loads or (element.name == "meta" and key == "content") or (key == "srcdoc")
            loads = loads or (key.startswith("data-") and key.endswith(("src", "url", "href")))
            if loads and names_a_host(value):
                found.append(f"<{element.name} {key}={value!r}>")
            if key == "style":
                found += in_style(value)
            if key.startswith("on"):
                found += in_script(value)
        if element.name == "style":
            found += in_style(element.text)
        if element.name == "script":
            found += in_script(element.text)
    return found
