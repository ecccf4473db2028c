"""Look at the built site as readers do: `python -m website.pictures FOLDER` writes pictures.

Each page is shown on a desktop and on a phone, in light and in dark. What a page asks for from
elsewhere, a page that is wider than a phone, a graph that is not drawn, and a search that finds
nothing are reported.
"""

import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.servers.chromium import Tab, opened
from website.build import SITE

PAGES = (
    "",
    "tutorials/first-procedure/",
    "choosing/",
    "aag/",
    "reference/settings/",
    "reference/python/",
)
_SEARCH = (
    "[...document.querySelectorAll('body > div')]"
    ".map(each => each.shadowRoot).find(root => root?.querySelector('input'))"
)
"""The search of the theme, which is in a shadow root."""
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
_WAIT = """
new Promise((done, failed) => {
  const began = Date.now()
  const late = () => Date.now() - began > 20000
  const look = () => (CONDITION) ? done(true) : late() ? done(false) : setTimeout(look, 50)
  look()
})
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def problems(site: Path, pictures: Path | None = None) -> list[str]:
    """Return what is wrong with the pages of a built site, as a browser shows them.

    Args:
        site: The folder of its HTML.
        pictures: The folder for the pictures of some pages; None for none.
    """
    faults: list[str] = []
    pages = sorted(str(page.parent.relative_to(site)) + "/" for page in site.rglob("index.html"))
    handler = partial(_Quiet, directory=str(site))
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        with opened(base, Path(profile)) as tab:
            tab.resize(*SCREENS["phone"])
            for page in pages:
                tab.go(base + page.removeprefix("./"))
                faults += [f"{page}: {problem}" for problem in _problems(tab, base)]
            tab.resize(*SCREENS["desktop"])
            for words in ("deadline_s", "memory dedupe", "STEPCRAFT_SOURCES"):
                if not _finds(tab, base, words):
                    faults.append(f"the search does not find {words}")
            for page in PAGES if pictures else ():
                assert pictures
                for screen, size in SCREENS.items():
                    for scheme in ("light", "dark"):
                        tab.resize(*size)
                        tab.colours(scheme)
                        tab.go(base + page)
                        _wait(tab, _DRAWN)
                        name = page.strip("/").replace("/", "-") or "index"
                        (pictures / f"{name}-{screen}-{scheme}.png").write_bytes(tab.picture())
        server.shutdown()
    return faults


_DRAWN = "!document.querySelector('pre.mermaid')"


def _problems(tab: Tab, base: str) -> list[str]:
    faults: list[str] = []
    if not _wait(tab, _DRAWN):
        faults.append("a graph is not drawn")
    width = tab.js("document.documentElement.scrollWidth - window.innerWidth")
    if width > 0:
        faults.append(f"it is {width} pixels wider than a phone")
    asked = tab.js("performance.getEntriesByType('resource').map(each => each.name)")
    faults += [
        f"it asks for {url}" for url in asked if not url.startswith((base, "data:", "blob:"))
    ]
    return faults


def _finds(tab: Tab, base: str, words: str) -> bool:
    """Tell whether the search of the site finds words."""
    tab.go(base)
    if not _wait(tab, f"document.querySelector('.md-search__button') && {_SEARCH}"):
        return False
    tab.js("document.querySelector('.md-search__button').click()")
    tab.js(f"{_SEARCH}.querySelector('input').focus()")
    tab.ask("Input.insertText", text=words)
    return _wait(tab, f"parseInt({_SEARCH}.querySelector('[role=status]')?.textContent) > 0")


def _wait(tab: Tab, condition: str) -> bool:
    return bool(tab.js(_WAIT.replace("CONDITION", condition)))


def main() -> int:
    """Write the pictures and print what is wrong."""
    pictures = Path(sys.argv[1]) if sys.argv[1:] else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    seen = problems(SITE / "html", pictures)
    print("\n".join(seen) or f"the pages in {SITE / 'html'} are well")
    return int(bool(seen))


if __name__ == "__main__":
    sys.exit(main())
