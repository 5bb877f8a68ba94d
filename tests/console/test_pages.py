"""The console in a real browser, over real services: what a person sees, with eyes, keyboard, screen reader, phone, and without scripts."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.console.conftest import FLAGS, SHOTS
from tests.console.world import NORTH, RUN, SOUTH, World
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.timeout(300)

#: Every template once.
PAGES = (
    "sign-in", "missing", "fleets", "fleet", "runs", "boundaries", "boundary", "streams", "stream", "certificates", "alerts", "judges",
    "dead-letters", "dead-letter", "audit",
)  # fmt: skip
#: Requests of the browser itself, which no page makes.
OWN = ("data:", "about:")
#: What axe-core calls serious or critical must not be there.
GRAVE = {"serious", "critical"}
#: Pixels of a narrow phone.
PHONE = 360


@pytest.fixture(scope="module")
def browser(chromium) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # `launch` gives each start a profile folder of its own.
        made = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield made
        made.close()


class Visitor:
    """A browser window, with what it asked for and what went wrong in it."""

    def __init__(self, world: World, context: BrowserContext):
        self.world, self.context = world, context
        self.page: Page = context.new_page()
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}") or dialog.dismiss())

    def sign_in(self, key: str) -> None:
        self.page.goto(self.world.url + "/console")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Fleets")).to_be_visible()

    def address(self, name: str) -> str:
        """Where one of `PAGES` is."""
        world = self.world
        north = world.path(NORTH)
        return {
            "sign-in": world.url + "/console/sign-in",
            "missing": world.path("nobody"),
            "fleets": world.url + "/console",
            "fleet": north,
            "boundary": f"{north}/boundaries/{world.boundary}",
            "shadow": f"{north}/boundaries/{world.shadow}",
            "hostile": world.path(SOUTH, f"/boundaries/{world.hostile}"),
            "stream": f"{north}/stream?name=harm",
            "certificates": world.path(SOUTH, "/certificates"),
            "dead-letter": f"{north}/dead-letters/{world.good_letter}",
        }.get(name, f"{north}/{name}")

    def open(self, name: str, status: int = 200) -> Page:
        answer = self.page.goto(self.address(name))
        assert answer is not None
        assert answer.status == status, (name, answer.text()[:2000])
        return self.page


@pytest.fixture(scope="module")
def signed_in(world, browser) -> Iterator[dict]:
    """The cookies of an operator who has signed in through the form."""
    context = browser.new_context()
    visitor = Visitor(world, context)
    visitor.sign_in(world.operator)
    assert visitor.wrong == []
    yield context.storage_state()
    context.close()


@pytest.fixture
def visit(world, browser, signed_in) -> Iterator:
    """Open a window of an operator."""
    contexts = []

    def make(**options) -> Visitor:
        contexts.append(browser.new_context(storage_state=signed_in, **options))
        return Visitor(world, contexts[-1])

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def tour(world, browser, signed_in) -> Iterator[Visitor]:
    """One window for all pages: a window of its own costs each as much as the page does."""
    context = browser.new_context(storage_state=signed_in)
    yield Visitor(world, context)
    context.close()


def grave(found: dict) -> list[str]:
    return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in found["violations"] if v["impact"] in GRAVE]


#: Pages that every run looks at; the long tests look at the others, which are made of the same parts.
FIRST = {"sign-in", "fleets", "boundary", "stream"}


@pytest.mark.parametrize("name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.long) for name in PAGES])
def test_a_page_is_whole_on_every_screen_and_for_everybody(tour, name):
    """It is drawn without an error, asks nobody else, fits a phone, and axe-core finds nothing grave in light or dark."""
    visitor, page = tour, tour.page
    visitor.asked.clear()
    visitor.wrong.clear()
    page.set_viewport_size({"width": 1280, "height": 860})
    page.emulate_media(color_scheme="light")
    visitor.open(name, 404 if name == "missing" else 200)
    expect(page.locator("main h1")).to_be_visible()
    for plot in page.locator("figure[data-chart] .plot").all():
        expect(plot.locator("canvas")).to_be_visible()
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}-light.png")
    assert grave(Axe().run(page).response) == []
    page.emulate_media(color_scheme="dark")
    assert grave(page.evaluate("axe.run({runOnly: ['color-contrast'], resultTypes: ['violations']})")) == []  # there since the first
    page.screenshot(path=SHOTS / f"{name}-dark.png")
    page.set_viewport_size({"width": PHONE, "height": 760})
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    page.screenshot(path=SHOTS / f"{name}-phone.png")
    assert [one for one in visitor.wrong if name != "missing" or "404" not in one] == []  # the browser says that of itself
    assert [url for url in visitor.asked if not url.startswith((visitor.world.url, *OWN))] == []


def test_the_form_takes_a_key_and_nothing_else(world, browser):
    """A wrong key is refused in words; a good one leads to the page that was asked for; signing out ends it in this browser."""
    context = browser.new_context()
    visitor = Visitor(world, context)
    page = visitor.page
    page.goto(visitor.address("streams"))
    page.get_by_label("API key").fill("wnw_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown, revoked or expired")
    page.get_by_label("API key").fill(world.operator)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Streams")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    page.goto(visitor.address("streams"))
    expect(page.get_by_label("API key")).to_be_visible()
    context.close()


def test_a_boundary_shows_what_stayed_and_what_went_and_why(visit):
    """Fate in a word beside every entry; pruned ones are left out of the committed side; opening one by keyboard shows its evidence."""
    visitor = visit()
    page = visitor.open("boundary")
    entries, pruned = page.locator("li.entry"), page.locator("li.entry.pruned")
    rows = visitor.world.database.sql(
        "SELECT count(*) AS entries, count(*) FILTER (WHERE decision = 'pruned') AS pruned FROM decisions WHERE boundary_id = $1",
        visitor.world.boundary,
    )[0]
    assert (entries.count(), pruned.count()) == (rows["entries"], rows["pruned"])
    assert rows["pruned"] > 0
    expect(pruned.first.locator(".word")).to_contain_text("pruned")
    expect(pruned.first.locator(".committed")).to_have_text("left out")
    committed = visitor.world.database.sql("SELECT text FROM entries WHERE boundary_id = $1 ORDER BY n", visitor.world.boundary)
    expect(entries.first.locator(".candidate .said")).to_have_text(committed[0]["text"].strip())
    summary = entries.first.locator("summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(entries.first.locator("details")).to_have_attribute("open", "")
    expect(entries.first.locator(".quote").first).to_contain_text("message")
    expect(entries.first.locator(".why")).to_contain_text("Root source")
    page.locator("#text-committed > summary").click()
    stays = "\n".join(page.locator("ol.summary .committed .said, ol.summary .between .committed").all_inner_texts())
    assert stays.split() == page.get_by_role("region", name="Committed summary").inner_text().split()
    page.get_by_text("Previous summary, as the host sent it").click()
    expect(page.get_by_role("region", name="Previous summary, as the host sent it")).to_be_visible()


def test_a_shadow_says_would_and_leaves_the_committed_text_whole(visit):
    """What a shadow would have pruned stands on both sides."""
    page = visit().open("shadow")
    pruned = page.locator("li.entry.pruned")
    expect(pruned.locator(".word")).to_contain_text("would be pruned")
    expect(pruned.locator(".committed .said")).to_contain_text("lounge access")


def test_hostile_text_is_text(visit):
    """Markup, template marks, marks of direction and a line of a megabyte are shown as they are, in part where they are long."""
    visitor = visit()
    page = visitor.open("hostile")
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    shown = page.locator("main").inner_text()
    assert "<script>window.pwned = 1</script>" in shown
    assert "{{ 7 * 7 }} {% raw %}" in shown
    assert "U+202E" in shown
    assert "U+200B" in shown
    assert "more characters" in shown
    assert "שלום" in shown
    assert "\u202e" not in page.content()
    assert len(page.content()) < 400_000
    assert page.evaluate("window.pwned") is None
    assert page.locator("main script, main img, main svg, main b b").count() == 0
    assert visitor.wrong == []


def test_news_appear_without_a_reload_and_leave_what_is_open_alone(visit):
    """A boundary that is committed elsewhere appears on the fleet's page by itself, and again after a pause."""
    visitor = visit()
    page, world = visitor.page, visitor.world
    page.goto(world.path(SOUTH))
    page.evaluate("window.mine = 1")
    page.locator("#charts summary").first.click()
    world.submit(SOUTH, "## Decisions\n- Flight HAT136 costs $152\n", run="news-1")
    expect(page.get_by_role("link", name="news-1 #1")).to_be_visible(timeout=15_000)
    assert page.evaluate("window.mine") == 1
    page.get_by_role("button", name="Live").click()
    expect(page.get_by_role("button", name="Paused")).to_be_visible()
    page.get_by_role("button", name="Paused").click()
    world.submit(SOUTH, "## Decisions\n- Flight HAT136 costs $152\n", run="news-2")
    expect(page.get_by_role("link", name="news-2 #1")).to_be_visible(timeout=15_000)
    assert visitor.wrong == []


def test_an_open_entry_stays_open_when_its_page_is_renewed(visit):
    """News of the fleet renew a boundary's page around the entry that somebody reads, and the keyboard stays where it was."""
    visitor = visit()
    page = visitor.open("hostile")
    summary = page.locator("#e1 > summary")
    summary.focus()
    page.keyboard.press("Enter")
    page.locator("#boundary").evaluate("one => { one.dataset.old = 1 }")
    visitor.world.submit(SOUTH, "## Decisions\n- Flight HAT136 costs $152\n", run="news-3")
    expect(page.locator("#boundary")).not_to_have_attribute("data-old", "1", timeout=15_000)
    expect(page.locator("#e1")).to_have_attribute("open", "")
    expect(page.locator("#e1 > summary")).to_be_focused()


def test_everything_is_reached_by_keyboard_and_seen_to_be(visit):
    """The first stop skips to the content; each further one is a control that shows its focus, in order, to the end of the page."""
    page = visit().open("dead-letter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.goto(page.url.partition("#")[0])
    controls = page.evaluate("[...document.querySelectorAll('a, button, input:not([type=hidden]), summary, [tabindex=\"0\"]')].length")
    seen = []
    for _ in range(controls):
        page.keyboard.press("Tab")
        focus = page.evaluate(
            "(() => { const at = document.activeElement, style = getComputedStyle(at);"
            " return [at.tagName, at.textContent.slice(0, 30), style.outlineStyle, parseFloat(style.outlineWidth),"
            " [...document.querySelectorAll('*')].indexOf(at)] })()"
        )
        assert focus[0] != "BODY", seen
        assert focus[2] != "none", focus
        assert focus[3] >= 2, focus
        seen.append(focus[4])
    assert seen == sorted(seen)
    assert len(set(seen)) == controls


def test_structure_is_there_for_a_screen_reader(visit):
    """One main heading, landmarks with names, and tables whose columns and rows have headers."""
    page = visit().open("fleet")
    assert page.locator("h1").count() == 1
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.get_by_role("navigation", name="Fleets")).to_be_visible()
    expect(page.get_by_role("navigation", name=f"Fleet {NORTH}").get_by_role("link", name="Overview")).to_have_attribute(
        "aria-current", "page"
    )
    table = page.get_by_role("table", name="Latest boundaries")
    assert table.get_by_role("columnheader").count() == 10
    assert table.get_by_role("rowheader").count() >= 4


def test_pages_work_without_scripts(visit):
    """Numbers, tables, evidence and forms are there where no script runs."""
    visitor = visit(java_script_enabled=False)
    page = visitor.open("stream")
    page.locator("figure summary").first.click()
    assert page.locator("figure table").first.locator("tbody tr").count() > 50
    page = visitor.open("fleet")
    expect(page.get_by_role("link", name=f"{RUN} #1")).to_be_visible()
    page = visitor.open("boundary")
    page.locator("li.entry summary").first.click()
    expect(page.locator("li.entry .why").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()


def test_numbers_stand_beside_what_they_may_be_trusted_for(visit):
    """An alarm is breached, silence is unproven and never "within budget"; every stream and certificate names its guarantee class."""
    visitor = visit()
    page = visitor.open("streams")
    harm = page.get_by_role("row").filter(has=page.get_by_role("link", name="harm", exact=True))
    expect(harm).to_contain_text("breached")
    calm = page.get_by_role("row").filter(has=page.get_by_role("link", name="decision-change", exact=True))
    expect(calm).to_contain_text("unproven")
    expect(calm).to_contain_text("anytime")
    expect(page.get_by_role("definition").filter(has_text="valid at every look and every stopping time")).to_be_visible()
    page = visitor.open("stream")
    expect(page.locator("figcaption").first).to_contain_text("alarmed at unit")
    expect(page.locator("figcaption").first).to_contain_text("an estimate, guarantee class none")
    page = visitor.open("certificates")
    expect(page.locator("article")).to_contain_text("2 (1 %) fail. <b>")
    expect(page.locator("article")).to_contain_text("fixed-n")
    page = visitor.open("judges")
    expect(page.get_by_role("region", name="Disagreement")).to_contain_text("second 1")


def test_a_held_fleet_says_so_first(visit):
    """The alarm of a stream is the first thing on its fleet's page, and in the row of the fleet."""
    visitor = visit()
    expect(visitor.open("fleet").locator(".banner.alarm")).to_contain_text("Held since")
    row = visitor.open("fleets").get_by_role("row").filter(has_text=NORTH)
    expect(row).to_contain_text("held")


def test_an_operator_holds_and_releases_a_fleet(visit):
    """By keyboard, with a reason: the page says that the fleet is held and why, then that it is free; half a form outlives news."""
    visitor = visit()
    page, world = visitor.page, visitor.world
    page.goto(world.path(SOUTH))
    page.locator("#hold > summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Why, for the audit trail")).to_be_focused()
    page.keyboard.type("new compressor <i>")
    world.submit(SOUTH, "## Decisions\n- Flight HAT136 costs $152\n", run="news-4")
    expect(page.get_by_role("link", name="news-4 #1")).to_be_visible(timeout=15_000)
    expect(page.get_by_label("Why, for the audit trail")).to_have_value("new compressor <i>")
    page.keyboard.press("Enter")
    expect(page.locator(".banner.alarm")).to_contain_text("new compressor <i>")
    page.locator("#release > summary").click()
    page.screenshot(path=SHOTS / "release-light.png")
    assert grave(Axe().run(page).response) == []
    page.get_by_label("Why, for the audit trail").fill("rolled back")
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.locator(".banner.alarm")).to_be_visible()  # the browser asks for the confirmation
    page.get_by_label("What held it is mended").check()
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.locator("#hold > summary")).to_be_visible()
    expect(page.locator(".banner.alarm")).to_have_count(0)
    audited = world.database.sql("SELECT action, because FROM audit_log WHERE fleet = $1 AND action LIKE 'fleet.%' ORDER BY id", SOUTH)
    assert [tuple(a) for a in audited][-2:] == [("fleet.hold", "new compressor <i>"), ("fleet.release", "rolled back")]
    assert visitor.wrong == []


def test_an_original_is_saved_to_the_byte(visit):
    """The committed summary, the previous one and a single entry are saved as files that hold exactly the stored bytes."""
    visitor = visit()
    page = visitor.open("boundary")
    stored = {r["kind"]: r["sha256"] for r in visitor.world.database.sql(
        "SELECT kind, sha256 FROM handles WHERE boundary_id = $1", visitor.world.boundary
    )}  # fmt: skip
    for label, kind in (("committed summary", "committed"), ("previous summary", "previous"), ("candidate", "candidate")):
        with page.expect_download() as saving:
            page.locator("#texts ~ p").get_by_role("link", name=label, exact=True).click()
        assert saving.value.suggested_filename == f"{kind}-{visitor.world.boundary}.txt"
        assert hashlib.sha256(Path(saving.value.path()).read_bytes()).hexdigest() == stored[kind]
    page.locator("#e1 > summary").click()
    with page.expect_download() as saving:
        page.locator("#e1").get_by_role("link", name="This entry, byte for byte").click()
    (entry,) = visitor.world.database.sql("SELECT text FROM entries WHERE boundary_id = $1 AND n = 1", visitor.world.boundary)
    assert Path(saving.value.path()).read_text().strip() == entry["text"].strip()
    page.reload()
    expect(page.get_by_role("region", name="Recovered originals").get_by_role("row").nth(1)).to_contain_text("somebody who looked")
    assert visitor.wrong == []


@pytest.mark.long
def test_a_page_without_a_stream_says_so_and_is_renewed_all_the_same(visit):
    """Where the gateway has no stream left the button and the foot of the page say how often it asks, until there is one again."""
    visitor = visit()
    page, world = visitor.page, visitor.world
    page.clock.install()
    page.route("**/console/events", lambda route: route.fulfill(status=429, headers={"retry-after": "15"}))
    page.goto(world.path(SOUTH))
    expect(page.get_by_role("status")).to_contain_text("asks every 15 seconds")
    expect(page.get_by_role("button", name="Every 15 s")).to_be_visible()
    world.submit(SOUTH, "## Decisions\n- Flight HAT136 costs $152\n", run="news-5")
    page.clock.run_for(16_000)
    expect(page.get_by_role("link", name="news-5 #1")).to_be_visible()
    page.unroute("**/console/events")
    page.clock.run_for(16_000)
    expect(page.get_by_role("button", name="Live")).to_be_visible()
    expect(page.get_by_role("status")).to_have_count(0)


def test_an_operator_replays_a_dead_letter(visit):
    """With a reason and a confirmation the body goes through outbox, bus and service again, once, and the audit trail says who and why."""
    visitor = visit()
    page, world = visitor.open("dead-letter"), visitor.world
    page.get_by_role("button", name="Replay").click()
    assert page.url == visitor.address("dead-letter")
    assert world.database.sql("SELECT replays FROM dead_letters WHERE id = $1", world.good_letter)[0]["replays"] == 0
    page.get_by_label("Why, for the audit trail").fill("the table is back <i>")
    page.get_by_label("The cause is mended").check()
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", name=f"Dead letter {world.good_letter}")).to_contain_text("replayed")
    wait_for(
        lambda: world.database.sql("SELECT 1 FROM runtime_events WHERE event_id = $1", world.good_event), 40, what="the replayed event"
    )
    audited = world.database.sql("SELECT * FROM audit_log WHERE details->>'dead_letter' = $1", str(world.good_letter))
    assert [(a["fleet"], a["because"], a["actor"].split(":")[0]) for a in audited] == [(NORTH, "the table is back <i>", "operator")]


def test_what_is_still_bad_becomes_another_dead_letter(visit):
    """A replay of a record that nothing can read ends where it began, as a new letter."""
    visitor = visit()
    world = visitor.world
    page = visitor.page
    page.goto(world.path(NORTH, f"/dead-letters/{world.bad_letter}"))
    expect(page.locator("pre.text")).to_have_text("{not json")
    page.get_by_label("Why, for the audit trail").fill("try")
    page.get_by_label("The cause is mended").check()
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("h1")).to_contain_text("replayed")
    wait_for(
        lambda: world.database.sql(
            "SELECT 1 FROM dead_letters WHERE fleet = $1 AND id > $2 AND reason = 'invalid'", NORTH, world.bad_letter
        ),
        40,
        what="the new letter",
    )


def test_an_auditor_looks_and_cannot_act(world, browser):
    """The page of a dead letter has no form for an auditor, and says whose key has."""
    context = browser.new_context()
    visitor = Visitor(world, context)
    visitor.sign_in(world.auditor)
    page = visitor.page
    page.goto(world.path(NORTH, f"/dead-letters/{world.bad_letter}"))
    expect(page.get_by_text("may look, not replay")).to_be_visible()
    assert page.get_by_role("button", name="Replay").count() == 0
    assert page.get_by_role("navigation", name="Fleets").get_by_role("link").all_inner_texts() == [NORTH]
    context.close()
