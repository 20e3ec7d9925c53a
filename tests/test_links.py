"""The check of the documentation's links finds broken ones, and only those."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "links.py"
if not TOOL.exists():  # as in an sdist
    pytest.skip("the tools are not here", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("links", TOOL)
assert SPEC
assert SPEC.loader
tool: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(b'<h1 id="top">A page</h1><a name="old">x</a>')

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("200", None),
        ("200#top", None),
        ("200#old", None),
        ("200#bottom", True),
        ("404", True),
        ("410", True),
        ("403", False),
        ("500", False),
    ],
)
def test_addresses(server: str, path: str, broken: bool | None) -> None:
    fault = tool.fault_of_address(f"{server}/{path}")
    assert (fault and fault[0]) is broken


def test_no_answer_says_nothing_about_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    fault = tool.fault_of_address("http://127.0.0.1:1/")
    assert fault
    assert not fault[0]


@pytest.mark.parametrize(
    ("link", "right"),
    [
        ("https://semver.org/", True),
        ("page.md#anchor", True),
        ("#anchor", True),
        ("https://semver", False),
        ("https://", False),
        ("https:/semver.org", False),
        ("http://semver.org/", False),
        ("missing.md", False),
    ],
)
def test_form(tmp_path: Path, link: str, right: bool) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"A [link]({link}), `[code](missing.md)`; <{link}>.\n")
    assert link in tool.links(page)
    assert (tool.fault_of_form(link, page) is None) is right
