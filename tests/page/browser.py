# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium with an empty profile, and what a test asks of it."""
import json
import shutil
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage")
WAIT_S = 60


class Browser:
    """`script`: without it pages run no JavaScript."""

    def __init__(self, script=True):
        self.profile = tempfile.mkdtemp(prefix="cv-page-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={self.profile}"):
            options.add_argument(flag)
        if not script:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.run = self.driver.execute_script

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def look(self, width=1280, height=900, dark=False, still=True):
        """The size of the window and what the reader prefers."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        wishes = {"prefers-color-scheme": "dark" if dark else "light",
                  "prefers-reduced-motion": "reduce" if still else "no-preference"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": name, "value": value} for name, value in wishes.items()]})

    def open(self, link):
        """Opens the page, and waits until it has drawn."""
        self.driver.get(link)
        self.until("return ['tr[data-arm]', 'canvas'].every((what) => document.querySelector(what) !== null)")

    def until(self, script, *args):
        """Waits until the script returns something true, and returns that."""
        try:
            return WebDriverWait(self.driver, WAIT_S, 0.02).until(lambda _: self.run(script, *args))
        except TimeoutException:
            raise AssertionError(f"not within {WAIT_S} s: {script}") from None

    def wait(self, holds):
        """Waits for something that the page cannot say."""
        end = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < end, f"not within {WAIT_S} s"
            time.sleep(0.02)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent.trim()", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)", selector)

    def tiles(self):
        """(figure, what is said below it) by a tile's name."""
        return {name: (figure, about) for name, figure, about in self.run(
            "return [...document.querySelectorAll('.tile')].map((tile) =>"
            "['.tile-name', '.figure', '.quiet'].map((part) => tile.querySelector(part).textContent))")}

    def rows(self):
        """What each row of the items says: name, class as its group's title says, score, radius, tokens."""
        return self.run("""
            return [...document.querySelectorAll('tr[data-arm]')].map((row) => ({
              arm: Number(row.dataset.arm), name: row.querySelector('.name').textContent,
              group: row.parentNode.querySelector('.group span').textContent,
              score: row.querySelector('.value').textContent, tokens: row.querySelector('.tokens').textContent}))""")

    def seek(self, index):
        """Moves the time slider as a reader does."""
        self.run("const slider = document.getElementById('time'); slider.value = arguments[0];"
                 "slider.dispatchEvent(new Event('input', {bubbles: true}))", index)
        self.frame()

    def turn(self, value):
        """Turns the dial of epsilon."""
        self.run("const dial = document.getElementById('epsilon-range'); dial.value = arguments[0];"
                 "dial.dispatchEvent(new Event('input', {bubbles: true}))", value)
        self.frame()

    def frame(self):
        self.driver.execute_async_script("const done = arguments[0];"
                                         "requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def cpu_ms(self):
        """The page's own processor time so far: how busy the machine is does not count."""
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return 1000 * next(entry["value"] for entry in metrics if entry["name"] == "TaskDuration")

    def said(self):
        """Lines of the console since the last call."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def asked(self):
        """Addresses that were asked for since the last call."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                found.append(message["params"].get("request", message["params"])["url"])
        return found

    def shot(self, path, width):
        """The whole page as a picture."""
        height = self.run("return document.documentElement.scrollHeight")
        self.look_size(width, height)
        time.sleep(0.3)  # charts follow the size in a frame of their own
        self.driver.save_screenshot(str(path))

    def look_size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)
