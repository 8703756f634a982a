"""Opens a page in headless Chromium, runs a script in it and returns what that returns."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
)
_TROUBLE = """<script>
const trouble = [];
addEventListener("error", (event) => trouble.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => trouble.push(`blocked ${event.blockedURI}`));
</script>"""
_ASK = """<script>
const pause = () => new Promise((done) => setTimeout(done, 150));
const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
const node = (id) => document.querySelector(`[data-node="${id}"]`);
const text = (selector) => document.querySelector(selector).textContent;
(async () => {
  await pause();
  let value = null;
  try { value = await (async () => { SCRIPT })(); } catch (error) { trouble.push(String(error)); }
  const requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  parent.postMessage(JSON.stringify({value, trouble, requests}), "*");
})();
</script>"""
_FRAME = """<!doctype html><body style="margin:0"><iframe src="page.htmlHASH" style="border:0;width:WIDTHpx;height:900px"></iframe>
<pre id="seen"></pre>
<script>addEventListener("message", (event) => { document.getElementById("seen").textContent = event.data; });</script>"""


def ask(page: str, script: str, folder: Path, *, width: int = 1280, fragment: str = "", dark: bool = False) -> Any:
    """Run a script in a page, which must load nothing and raise no error.

    Args:
        page: The HTML text.
        script: The body of an async function; it has `pause()`, `key(element, name)`, `node(id)` and `text(selector)`.
        folder: For the files.
        width: Of the page, in pixels.
        fragment: What the address ends in, with its `#`.
        dark: Whether the system prefers a dark theme.
    """
    assert CHROMIUM is not None
    told = page.replace("<head>", f"<head>{_TROUBLE}", 1)
    before, end, after = told.rpartition("</body>")
    (folder / "page.html").write_text(before + _ASK.replace("SCRIPT", script) + end + after, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(_FRAME.replace("HASH", html.escape(fragment)).replace("WIDTH", str(width)), encoding="utf-8")
    flags = [
        *_FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={max(width, 500)},900",
        "--virtual-time-budget=5000",
    ]
    flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run(
        [CHROMIUM, *flags, "--dump-dom", frame.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    seen = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert seen, done.stderr[-2000:]
    assert seen[1], f"no answer: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    answer = json.loads(html.unescape(seen[1]))
    assert (answer["trouble"], answer["requests"]) == ([], [])
    return answer["value"]
