"""The report in a real browser: what only a browser can tell. Skipped where there is none."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from contrastbench.benchmarks import report
from contrastbench.benchmarks.report import contents
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.table import Table
from made_records import add

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install selenium"
)
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no chromium with chromedriver on this machine"
)

ENTER, SPACE = "\ue007", " "
ROWS = "#table-1-table > tbody > tr:not(.drill)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on a table with many columns, and on records that diverged and failed."""
    results = tmp_path_factory.mktemp("results")
    sets = ["MUTAG", "DD", "NCI1", "PROTEINS", "COLLAB", "IMDB-BINARY"]
    table = Table(
        name="small",
        title="t",
        source="s",
        decimals=2,
        domain="graph",
        columns={name: {"dataset": name} for name in sets},
        rows=[
            {
                "name": "a quoted method with a name that is rather long",
                "paper": {name: [78.5, 0.5] for name in sets},
            },
            {"name": "base", "loss": "infonce", "paper": {name: [80.0, 1.0] for name in sets}},
            {"name": "warm", "loss": "infonce", "params": {"temperature": 0.4}},
            {"name": "new", "loss": "adnce"},
        ],
    )
    for place, dataset in enumerate(sets):
        for seed in range(2):
            add(results, seed, 79.0 + seed + place, dataset=dataset)
            add(results, seed, 77.0 + seed, dataset=dataset, params={"temperature": 0.4})
            add(results, seed, 82.0 - seed - place, dataset=dataset, loss="adnce")
    add(results, 3, 0.0, status="failed", details={"error": "<b>bold</b>" + 200 * "x"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "load", lambda name, **_: table)
        patch.setattr(catalogue, "names", lambda: ["small"])
        report.write([], results, results / "report.html")
    return results / "report.html"


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """A headless browser that keeps logs."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(
    params=[(1280, "light"), (1280, "dark"), (390, "light")], ids=["desktop", "dark", "phone"]
)
def opened(request: pytest.FixtureRequest, chrome: Any, page: Path) -> Any:
    """The page at a width and in a colour scheme."""
    width, scheme = request.param
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    chrome.get_log("performance")
    chrome.get(page.as_uri())
    return chrome


def press(driver: Any, element: Any, key: str) -> None:
    """A key on a focused element, as without a mouse."""
    driver.execute_script("arguments[0].focus()", element)
    driver.switch_to.active_element.send_keys(key)


def requests(driver: Any) -> list[str]:
    """What the browser has asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]


def open_all(driver: Any) -> None:
    """One record of every row of both lists."""
    for button in driver.find_elements(
        "css selector", "tr > :nth-child(2) .place, #records-table > tbody button"
    ):
        driver.execute_script("arguments[0].click()", button)


def test_it_is_quiet_and_fetches_nothing(opened: Any, page: Path) -> None:
    open_all(opened)
    assert opened.get_log("browser") == []
    assert [url for url in requests(opened) if not url.startswith("data:")] == [page.as_uri()]


def test_it_never_scrolls_sideways(opened: Any) -> None:
    open_all(opened)
    width, inner = opened.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert width <= inner
    assert opened.find_elements("css selector", ".drill .inner")


def test_columns_sort_by_the_keyboard(opened: Any) -> None:
    header = opened.find_elements("css selector", "#table-1-table > thead button")[1]

    def names() -> list[str]:
        return [
            row.find_element("css selector", "th").text.split("\n")[0]
            for row in opened.find_elements("css selector", ROWS)
        ]

    press(opened, header, ENTER)
    down = names()
    assert [name[:5] for name in down] == [
        "new",
        "base",
        "a quo",
        "warm",
    ]  # 81.5, 79.5, 78.5 and 77.5
    assert (
        opened.execute_script("return arguments[0].closest('th').ariaSort", header) == "descending"
    )
    press(opened, header, SPACE)
    assert names() == down[::-1]
    assert (
        opened.execute_script("return arguments[0].closest('th').ariaSort", header) == "ascending"
    )


def test_rows_are_filtered_and_counted(opened: Any) -> None:
    press(opened, opened.find_element("css selector", "[data-filter=table-1-table]"), "base")
    assert [row.is_displayed() for row in opened.find_elements("css selector", ROWS)] == [
        False,
        True,
        False,
        False,
    ]
    assert opened.find_element("id", "table-1-table-count").text == "1 of 4 rows"
    press(opened, opened.find_element("css selector", "[data-filter=records-table]"), "DD adnce")
    shown = [
        row
        for row in opened.find_elements("css selector", "#records-table > tbody > tr")
        if row.is_displayed()
    ]
    assert [row.find_element("css selector", "th").text for row in shown] == ["graph DD adnce"]


def test_quoted_rows_can_be_hidden(opened: Any) -> None:
    press(opened, opened.find_element("css selector", "[data-only-run]"), SPACE)
    assert [row.is_displayed() for row in opened.find_elements("css selector", ROWS)] == [
        False,
        True,
        True,
        True,
    ]


def test_a_number_opens_its_records(opened: Any) -> None:
    button = opened.find_element("css selector", ".place")
    press(opened, button, ENTER)
    drill = opened.find_element("css selector", "tr.drill")
    assert button.get_attribute("aria-expanded") == "true"
    assert "infonce on MUTAG (graph): 2 ok, 1 failed" in drill.text
    assert "failed: <b>bold</b>" in drill.text
    assert "infonce/" in drill.text
    assert (
        drill.find_element("css selector", "svg")
        .get_attribute("aria-label")
        .startswith("Training loss by epoch: seed 0")
    )
    press(opened, button, ENTER)
    assert button.get_attribute("aria-expanded") == "false"
    assert opened.find_elements("css selector", "tr.drill") == []


def test_focus_is_seen(opened: Any) -> None:
    opened.find_element("css selector", "body").send_keys("\ue004")
    for _ in range(12):
        outline = opened.execute_script(
            "const e = document.activeElement; return [e.tagName, getComputedStyle(e).outlineStyle]"
        )
        assert outline[1] != "none", outline
        opened.switch_to.active_element.send_keys("\ue004")


def test_text_can_be_read_on_its_ground(opened: Any) -> None:
    """Contrast of 4.5 to 1 by WCAG 2 for every text."""
    wrong = opened.execute_script(CONTRAST)
    assert wrong == []


CONTRAST = """
const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => { const [r, g, b] = c.map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
const wrong = [];
for (const e of document.querySelectorAll("body *:not(script):not(style):not(svg *)")) {
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5 && !e.classList.contains("mark")) wrong.push(e.outerHTML.slice(0, 80));
}
return wrong;
"""


def test_a_plot_is_saved_as_a_file_that_needs_no_page(opened: Any, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    button = opened.find_element("css selector", "figure.differences button.save")
    opened.execute_script("arguments[0].click()", button)
    saved = tmp_path / "Differences-from-base.svg"
    WebDriverWait(opened, 30).until(lambda _: saved.is_file())
    text = saved.read_text()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "currentColor" not in text
    assert "var(" not in text
