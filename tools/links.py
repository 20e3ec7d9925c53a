"""Checks the links of the documentation: their form, the files and the addresses that they name.

python tools/links.py             all checks; needs the network
python tools/links.py --offline   form and files only, as tools/lint.sh does

A link must name a file of the checkout, or an address that begins with https:// and has a host with
a dot. An address fails if its server answers 404 or 410, if its host does not exist, or if the page
lacks the anchor after "#". Other failures, such as a timeout or a proxy that refuses, are listed as
"not checked" and do not count: they say nothing about the link.
"""

from __future__ import annotations

import re
import socket
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]
PAGES += [*ROOT.glob("src/**/*.md"), ROOT / "pyproject.toml", *ROOT.glob("python/**/*.py")]

ADDRESS = re.compile(r"\bhttps?:[^\s<>\"'`]+")
TARGET = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\))*[^()\s]*)\)")  # of [text](target)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
GONE = (404, 410)
SECONDS = 20


def links(page: Path) -> set[str]:
    """Return the targets of a page's links."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        text = CODE.sub("", text)
    markdown = TARGET.findall(text) if page.suffix == ".md" else []
    bare = (match.rstrip(".,;:!?)]") for match in ADDRESS.findall(TARGET.sub("]", text)))
    return {*markdown, *bare}


def fault_of_form(link: str, page: Path) -> str | None:
    """Return the fault of a link that shows without the network, or None."""
    parts = urlsplit(link)
    if not parts.scheme:
        path = page.parent / unquote(parts.path)
        return None if path.exists() else "no such file"
    if parts.scheme == "mailto":
        return None
    if parts.scheme != "https":
        return "must begin with https://"
    if not re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", parts.netloc):
        return f"{parts.netloc!r} is not the name of a host"
    return None


class Anchors(HTMLParser):
    """Collects the anchors of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str | None] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the element's id and, of a link, its name."""
        self.names.update(
            value for key, value in attrs if key == "id" or (tag == "a" and key == "name")
        )


def fault_of_address(link: str) -> tuple[bool, str] | None:
    """Fetch an address; return whether it is broken, with the reason, or None if it is right."""
    address, anchor = urldefrag(link)
    request = urllib.request.Request(address, headers={"User-Agent": "Mozilla/5.0 (link check)"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            if not anchor or answer.headers.get_content_type() != "text/html":
                return None
            anchors = Anchors()
            anchors.feed(answer.read().decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        return error.code in GONE, f"{error.code} {error.reason}"
    except urllib.error.URLError as error:
        unknown = (
            isinstance(error.reason, socket.gaierror) and error.reason.errno == socket.EAI_NONAME
        )
        return unknown and networked(), str(error.reason)
    except (OSError, ValueError) as error:
        return False, str(error)
    return None if unquote(anchor) in anchors.names else (True, f"has no anchor {anchor!r}")


def networked() -> bool:
    """Return True if host names can be resolved."""
    try:
        socket.getaddrinfo("example.com", 443)
    except OSError:
        return False
    return True


def main(words: list[str]) -> int:
    """Check all links; return the exit status."""
    if words not in ([], ["--offline"]):
        print(__doc__, file=sys.stderr)
        return 2
    pairs = [(page, link) for page in sorted(PAGES) for link in sorted(links(page))]
    broken = [
        (f"{page.relative_to(ROOT)}: {link}", fault)
        for page, link in pairs
        if (fault := fault_of_form(link, page))
    ]
    unknown: list[tuple[str, str]] = []
    addresses = sorted({link for _, link in pairs if link.startswith("https://")})
    if not words:
        with ThreadPoolExecutor() as pool:
            for link, found in zip(addresses, pool.map(fault_of_address, addresses), strict=True):
                if found:
                    (broken if found[0] else unknown).append((link, found[1]))
    for text, fault in unknown:
        print(f"not checked: {text}: {fault}")
    for text, fault in broken:
        print(f"broken: {text}: {fault}")
    checked = 0 if words else len(addresses) - len(unknown)
    if not words or broken:
        print(f"{len(pairs)} links, {len(addresses)} addresses, {checked} of them fetched")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
