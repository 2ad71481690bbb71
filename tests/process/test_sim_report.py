"""The page of `hidane sim --html` in a real browser: drawn without errors and without a network."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import browser as web  # noqa: E402
import hidane_process as hidane  # noqa: E402

pytestmark = pytest.mark.skipif(web.DRIVER is None, reason="no chromedriver: tools/deps.sh test installs it")
COMMAND = ["sim", "--fleet", "4x12", "--phase", "sustained", "cold_burst", "--policy", "round_robin", "prefix",
           "--requests", "300"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    subprocess.run([hidane.BINARY, *COMMAND, "--html", path], check=True, capture_output=True, timeout=120)
    return path


@pytest.fixture(scope="module")
def chromium():
    with web.browser() as opened:
        yield opened


@pytest.fixture
def report(page, chromium):
    chromium.media()
    chromium.open(page.as_uri())
    chromium.complaints()
    return chromium


def count(report, selector):
    return report.run("return document.querySelectorAll(arguments[0]).length", selector)


def text(report, selector):
    return report.run("return document.querySelector(arguments[0]).textContent", selector)


def test_it_opens_without_a_complaint_and_asks_for_nothing_else(page, chromium):
    chromium.requests()
    chromium.open(page.as_uri())
    assert chromium.requests() == [page.as_uri()]
    assert chromium.complaints() == []


def test_it_says_what_it_shows_and_what_made_it(report):
    assert "Simulated cluster" in text(report, "h1")
    assert "hidane sim --fleet 4x12" in text(report, "#about")
    assert "4x12" in text(report, "#finding")


def test_every_chart_has_marks(report):
    for chart in ("#ttft", "#hit"):
        drawn = report.run("return [...document.querySelectorAll(arguments[0])].map(p => p.getTotalLength())",
                           f"{chart} .line")
        assert len(drawn) == 2 and min(drawn) > 50, chart
    for chart in ("#held", "#cached", "#assigned"):
        assert count(report, f"{chart} .heat path") >= 2, chart
    assert count(report, "#rows tbody tr:not(.group)") == 4


@pytest.mark.parametrize("chart, shows", [("#ttft", "prefix"), ("#hit", "round_robin"), ("#held", "cached")])
def test_hovering_shows_values(report, chart, shows):
    report.hover(f"{chart} svg")
    assert shows in text(report, f"{chart} .tip") and "%" in text(report, f"{chart} .tip")


def test_the_keyboard_reads_values_too(report):
    right = "\ue014"
    report.press("#ttft svg", right)
    first = text(report, "#ttft .tip b")
    report.press("#ttft svg", right)
    assert text(report, "#ttft .tip b") != first


def test_another_phase_draws_other_lines(report):
    line = "return document.querySelector('#ttft .line').getAttribute('d')"
    before = report.run(line)
    report.run("const s = document.getElementById('phase'); s.value = 'cold_burst'; s.dispatchEvent(new Event('change'))")
    assert report.run(line) != before
    assert "cold_burst" in text(report, "#finding")


def test_a_policy_can_be_taken_out_of_the_charts(report):
    report.run("document.querySelector('#legend input').click()")
    assert count(report, "#hit .line") == 1


def test_it_fits_a_phone_and_follows_the_dark_scheme(report, page):
    background = "return getComputedStyle(document.body).backgroundColor"
    light = report.run(background)
    report.media(width=400, scheme="dark")
    report.open(page.as_uri())
    assert report.run("return document.documentElement.scrollWidth") <= 400
    assert report.run(background) != light
