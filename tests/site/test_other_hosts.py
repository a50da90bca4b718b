"""No page asks another host for anything: every built page and asset is looked at.

A test for `fonts.googleapis.com` alone would have passed with a script from a CDN; so the question is put the other way
round: whatever names a host must be a plain link, an XML namespace, or a comment.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin

import pytest

from tests.site import other_hosts
from tests.site.html import parse

FETCHES = [
    '<link rel="stylesheet" href="https://fonts.example/css">',
    '<link rel="preconnect" href="//fonts.example" crossorigin>',
    '<link rel="dns-prefetch" href="//cdn.example">',
    '<link rel="manifest" href="https://a.example/m.json">',
    '<script src="https://cdn.example/x.js"></script>',
    "<script>fetch('https://api.example/stars')</script>",
    '<script>import("//cdn.example/x.mjs")</script>',
    '<img src="http://pictures.example/a.png">',
    '<img srcset="a.png 1x, https://pictures.example/a.png 2x">',
    '<iframe src="https://video.example/1"></iframe>',
    "<iframe srcdoc=\"<img src='https://video.example/1'>\"></iframe>",
    '<video poster="//v.example/p.png"></video>',
    '<object data="https://o.example/x"></object>',
    '<svg><image href="https://o.example/x.png"/></svg>',
    '<svg><use xlink:href="https://o.example/x.svg#a"/></svg>',
    '<meta property="og:image" content="https://o.example/card.png">',
    '<meta http-equiv="refresh" content="0; url=https://o.example/">',
    '<style>@import "https://fonts.example/css";</style>',
    "<style>@font-face { src: url(//fonts.example/a.woff2) }</style>",
    '<p style="background: url(https://o.example/b.png)">',
    "<p onclick=\"location='https://o.example/'\">",
    '<form action="https://forms.example/"></form>',
    '<a ping="https://count.example/" href="x.html">',
    '<base href="https://o.example/">',
]


@pytest.mark.parametrize("html", FETCHES)
def test_the_search_finds_each_way_to_fetch(html):
    assert other_hosts.in_page(parse(html)), html


def test_the_search_lets_links_namespaces_and_own_files_be():
    own = (
        '<a href="https://docs.example/">read</a><img src="../assets/a.png"><script src="a//b.js"></script>'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg><script>// see https://a.example/\nlet a = 1 // 2</script>'
        '<meta name="description" content="a share // of the loss">'
    )
    assert other_hosts.in_page(parse(own)) == []


def test_no_page_fetches_from_another_host(pages):
    assert len(pages) > 10
    found = {name: other_hosts.in_page(page) for name, page in pages.items()}
    assert {name: hosts for name, hosts in found.items() if hosts} == {}


def test_no_style_sheet_fetches_from_another_host(site):
    sheets = list(site.rglob("*.css"))
    assert len(sheets) >= 3
    assert {sheet.name: hosts for sheet in sheets if (hosts := other_hosts.in_style(sheet.read_text("utf-8")))} == {}


def test_no_script_holds_an_address_that_could_be_loaded(site):
    scripts = list(site.rglob("*.js"))
    assert any(script.name.startswith("bundle.") for script in scripts)
    found = {address for script in scripts for address in other_hosts.in_script(script.read_text("utf-8"))}
    assert found == set()


def test_no_page_has_what_makes_the_theme_load_from_elsewhere(pages):
    # mermaid diagrams come from a CDN; facts of a repository from its host; versions, analytics, comments likewise.
    triggers = {"mermaid", "giscus", "md-source__fact", "__analytics"}
    for name, page in pages.items():
        for element in page.elements:
            marks = {*element.attributes.get("class", "").split(), element.attributes.get("id", "")}
            assert not marks & triggers, (name, element.name, element.attributes)
            assert element.attributes.get("data-md-component") not in ("source", "consent"), (name, element.attributes)
        settings = json.loads(next(e.text for e in page.all("script") if e.attributes.get("id") == "__config"))
        assert settings["version"] is None, name
        assert not names_of_hosts(json.dumps(settings)), name


def names_of_hosts(text: str) -> list[str]:
    return re.findall(r"https?:\\?/\\?/[\w.-]+", text)


def test_other_kinds_of_files_are_few_and_name_no_host_that_loads(site):
    kinds = {path.suffix for path in site.rglob("*") if path.is_file()}
    assert kinds <= {".html", ".css", ".js", ".json", ".svg", ".png", ".xml", ".gz"}, kinds
    for drawing in site.rglob("*.svg"):
        assert other_hosts.in_page(parse(drawing.read_text("utf-8"))) == [], drawing
    for data in site.rglob("*.json"):
        # The search index holds the text of the pages; its results are plain links to our own pages.
        for entry in json.loads(data.read_text("utf-8")).get("docs", []):
            assert not other_hosts.names_a_host(entry["location"]), entry["location"]
    for sitemap in site.rglob("*.xml"):
        assert [h for h in names_of_hosts(sitemap.read_text("utf-8")) if "sitemaps.org" not in h] == [], sitemap


def test_links_to_other_hosts_are_few(pages):
    links = {e.attributes.get("href", "") for page in pages.values() for e in page.all("a")}
    assert len([link for link in links if other_hosts.names_a_host(link)]) <= 10


def test_a_served_site_answers_all_that_its_pages_ask_for(site, pages):
    """Follow what a browser loads, page by page, from a server: a missing script or picture would be a 404."""
    handler = functools.partial(_Silent, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_port}"
        wanted = set()
        for name, page in pages.items():
            for element in page.all("link", "script", "img", "iframe", "source"):
                address = element.attributes.get("src") or (element.name == "link" and element.attributes.get("href"))
                if address and not address.startswith("data:"):
                    wanted.add(urljoin(f"{home}/{name}", address))
        assert len(wanted) > 5
        for address in wanted:
            assert address.startswith(home), address
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert answer.status == 200, address
        server.shutdown()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""
