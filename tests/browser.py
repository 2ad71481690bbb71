"""A headless Chromium by the WebDriver protocol, with nothing but the standard library."""
import contextlib
import json
import re
import shutil
import subprocess
import urllib.request

DRIVER = shutil.which("chromedriver")
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the standard's key of an element's id


class Browser:
    """One session. `requests()` are the addresses that were asked for, `complaints()` the console's."""

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}/session"
        options = {"goog:chromeOptions": {"args": ARGUMENTS},
                   "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        session = self._call("POST", "", {"capabilities": {"alwaysMatch": options}})
        self.base += "/" + session["sessionId"]

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value that `script` returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def hover(self, selector, x=0, y=0):
        """Moves the pointer to (x, y) from the middle of an element, scrolled into view."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        move = {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: element[ELEMENT]}, "x": x, "y": y}
        self._call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def press(self, selector, key):
        """Focuses an element and types a key of it: `\\ue014` is the right arrow."""
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{element[ELEMENT]}/value", {"text": key})

    def media(self, width=1280, scheme="light"):
        self._cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def _cdp(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self):
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        entries = self._call("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]

    def close(self):
        self._call("DELETE", "")


@contextlib.contextmanager
def browser():
    driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        port = next(found[1] for line in driver.stdout if (found := re.search(r"on port ([1-9]\d*)", line)))
        opened = Browser(port)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        driver.terminate()
        driver.wait(10)
        driver.stdout.close()
