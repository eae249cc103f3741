"""The report in a real browser: what only a browser can tell. Skipped where there is none."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks import report
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import NEWEST
from made_records import add, small_table

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
ROWS = "#values > tbody > tr"
PAGES = (
    *("index.html", "tables/small.html", "losses/adnce.html", "records/index.html"),
    *("records/graph/MUTAG.html", "mail.html"),
)
VIEWS = {"desktop": (1280, "light"), "phone": (390, "dark")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report on a table with many columns, and on records that diverged and failed."""
    results = tmp_path_factory.mktemp("results")
    sets = ["MUTAG", "DD", "NCI1", "PROTEINS", "COLLAB", "IMDB-BINARY"]
    table = small_table(
        decimals=2,
        columns={name: {"dataset": name} for name in sets},
        rows=[
            {
                "name": "a quoted method with a name that is rather long",
                "paper": {name: [78.5, 0.5] for name in sets},
            },
            {"name": "base", "loss": "infonce", "paper": {name: [80.0, 1.0] for name in sets}},
            {"name": "warm", "loss": "infonce", "params": {"temperature": 0.4}},
            {"name": "new", "loss": "adnce"},
            {"name": "untrained", "loss": "none"},
        ],
    )
    for place, dataset in enumerate(sets):
        for seed in range(2):
            add(
                results,
                seed,
                79.0 + seed + place,
                dataset=dataset,
                details={"seconds_training": 1.0},
            )
            add(results, seed, 77.0 + seed, dataset=dataset, params={"temperature": 0.4})
            took = {"seconds_training": 2.0}
            add(results, seed, 82.0 - seed - place, dataset=dataset, loss="adnce", details=took)
            add(results, seed, 40.0 + seed, dataset=dataset, loss="none")
    add(results, 3, 0.0, status="failed", details={"error": "<b>bold</b>" + 200 * "x"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contrastbench.benchmarks.report.site.load_table", lambda name, **_: table)
        patch.setattr(catalogue, "table_names", lambda: ["small"])
        patch.setitem(NEWEST, "standard", "small")
        report.write_report(["small"], results, results / "site")
        report.write_report(["small"], results, results / "site" / "mail.html", single=True)
    return results / "site"


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(params=VIEWS)
def view(request: pytest.FixtureRequest, chrome: Any) -> Any:
    width, scheme = VIEWS[request.param]
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    return chrome


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, view: Any, site: Path) -> Any:
    """One of the pages, with everything on it unfolded."""
    view.get_log("performance")
    view.get_log("browser")
    view.get((site / request.param).as_uri())
    view.execute_script("document.querySelectorAll('details').forEach((one) => one.open = true)")
    return view


@pytest.fixture
def table(view: Any, site: Path) -> Any:
    view.get((site / "tables/small.html").as_uri())
    return view


def press(driver: Any, element: Any, key: str) -> None:
    """A key on a focused element, as without a mouse."""
    driver.execute_script("arguments[0].focus()", element)
    driver.switch_to.active_element.send_keys(key)


def requests(driver: Any) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]


def test_the_leaderboard_sorts_and_filters(view: Any, site: Path) -> None:
    """A phone has a table for each column."""
    view.get((site / "index.html").as_uri())
    board = next(one for one in view.find_elements("css selector", ".dots") if one.is_displayed())

    def names() -> list[str]:
        rows = board.find_elements("css selector", "th[scope=row]")
        return [row.text.split("\n")[0] for row in rows if row.is_displayed()]

    press(view, board.find_element("css selector", "thead button"), ENTER)
    assert names() == ["new", "untrained", "warm"]
    assert len(board.find_elements("css selector", "thead th")) in (3, 8)
    view.find_element("css selector", "input[type=search]").send_keys("WAR")
    assert names() == ["warm"]


def test_a_page_fetches_its_own_files_fits_and_can_be_read(page: Any, site: Path) -> None:
    """Contrast is 4.5 to 1 by WCAG 2 for every text."""
    assert page.get_log("browser") == []
    fetched = {url for url in requests(page) if not url.startswith("data:")}
    shared = {(site / name).as_uri() for name in ("style.css", "script.js")}
    alone = page.current_url.endswith("mail.html")
    assert fetched == {page.current_url, *(set() if alone else shared)}
    width, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert width <= inner
    assert page.execute_script(CONTRAST) == []


def test_an_accessibility_checker_finds_nothing(page: Any) -> None:
    axe = pytest.importorskip(
        "axe_selenium_python", reason='no axe: pip install "axe-selenium-python>=3"'
    ).Axe(page)
    axe.inject()
    found = axe.run(options="{preload: false}")
    assert len(found["passes"]) > 10
    wrong = {
        one["id"]: [node["html"][:200] for node in one["nodes"]] for one in found["violations"]
    }
    assert wrong == {}


def test_a_number_opens_its_records_without_scripts(view: Any, site: Path) -> None:
    view.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    view.get((site / "tables/small.html").as_uri())
    assert view.find_elements("css selector", "thead button") == []
    press_link = view.find_element("css selector", "#values td a")
    press_link.send_keys(ENTER)
    view.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    part = view.find_element("css selector", "tbody:target")
    assert "MUTAG" in view.current_url
    assert "2 ok, 1 failed" in part.text
    assert "<b>bold</b>" in part.text
    assert "bench reproduce " in part.text


def test_columns_sort_by_the_keyboard(table: Any) -> None:
    header = table.find_elements("css selector", "#values > thead button")[1]

    def names() -> list[str]:
        return [
            row.find_element("css selector", "th").text.split("\n")[0]
            for row in table.find_elements("css selector", ROWS)
        ]

    press(table, header, ENTER)
    down = names()
    # 81.5, 79.5, 78.5, 77.5 and 40.5
    assert [name[:5] for name in down] == ["new", "base", "a quo", "warm", "untra"]
    sorted_ = "return arguments[0].closest('th').ariaSort"
    assert table.execute_script(sorted_, header) == "descending"
    press(table, header, SPACE)
    assert names() == down[::-1]
    assert table.execute_script(sorted_, header) == "ascending"


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
