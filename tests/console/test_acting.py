"""What operators do from the console, and who cannot, whatever form is sent."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from asyncpg import InsufficientPrivilegeError

from winnow.storage import dead_letters, fleets, raw


async def test_the_database_itself_keeps_dead_letters_apart(place):
    """In the gateway's role another fleet's letters are neither seen nor changed, and a letter cannot be given to another fleet."""
    async with place.db.fleet_transaction("somebody-else") as tx:
        assert await dead_letters.page(tx, fleet=place.fleet) == []
        await dead_letters.mark_replayed(tx, [place.letter], now=datetime.now(UTC))
    assert await place.replays() == 0
    for statement in ("UPDATE dead_letters SET fleet = 'x'", "DELETE FROM dead_letters", "SELECT * FROM audit_log"):
        with pytest.raises(InsufficientPrivilegeError):
            async with place.db.fleet_transaction(place.fleet) as tx:
                await raw.execute(tx, statement)


async def test_an_operator_replays_once_a_form(place):
    """The body waits in the outbox under a new id, the letter counts its replay, and the audit trail names the key and the reason."""
    async with place.person("operator") as http:
        answer = await place.replay(http, token=await place.token(http), because="table \x00 is\nback")
        assert (answer.status_code, await place.replays()) == (303, 1)
    async with place.db.transaction() as tx:
        rows = await raw.fetch(tx, "SELECT topic, key, run FROM outbox WHERE fleet = $1", place.fleet)
        assert [tuple(r) for r in rows] == [("winnow.runtime.v1", f"{place.fleet}/r", "r")]
        query = "SELECT actor, because, details FROM audit_log WHERE action = 'dead_letter.replay' AND fleet = $1"
        (audited,) = await raw.fetch(tx, query, place.fleet)
    assert audited["actor"].startswith("operator:")
    assert (audited["because"], audited["details"]["dead_letter"]) == ("table \ufffd is back", place.letter)


async def test_a_replay_that_fails_is_written_down(place):
    """What an operator asked for and did not get stands in the audit trail as failed, with the key and the reason."""
    async with place.person("operator") as http:
        form = {"because": "mended", "confirmed": "yes", "token": await place.token(http)}
        answer = await http.post(f"/console/fleets/{place.fleet}/dead-letters/{2**62}/replay", data=form, headers=place.headers)
        assert answer.status_code == 404
    async with place.db.transaction() as tx:
        query = "SELECT actor, because, outcome FROM audit_log WHERE action = 'dead_letter.replay' AND fleet = $1"
        (audited,) = await raw.fetch(tx, query, place.fleet)
    assert audited["actor"].startswith("operator:")
    assert (audited["because"], audited["outcome"]) == ("mended", "failed")


async def test_an_operator_holds_and_releases_a_fleet(place):
    """The gate is held and free again, the first reason stays, who has read of another hold ends none, and all of it is written down."""
    now = datetime.now(UTC)
    async with place.person("operator") as http:
        token = await place.token(http)
        _, hold, release = place.forms
        assert "Hold the fleet" in (await http.get(place.pages[0])).text
        for because in ("new \x00\ncompressor", "another"):
            answer = await place.send(http, hold, token=token, because=because, confirmed="")
            assert (answer.status_code, answer.headers["location"]) == (303, place.pages[0])
        assert await place.held_because() == "new \ufffd compressor"
        page = (await http.get(place.pages[0])).text
        assert "Release the fleet" in page
        assert "Hold the fleet" not in page
        assert (await place.send(http, release, token=token, confirmed="")).status_code == 422
        since = await place.held_since()
        stale = await place.send(http, release, token=token, since="2026-01-01T00:00:00+00:00")
        assert (stale.status_code, "for another reason by now" in stale.text) == (422, True)
        async with place.db.transaction() as tx:
            assert (await fleets.gate(tx, [place.fleet], now=now, stale_after=timedelta(minutes=1)))[place.fleet].held
        for _ in range(2):
            assert (await place.send(http, release, token=token, since=since)).status_code == 303
    assert await place.held_because() is None
    done = [("fleet.hold", "operator", "new \ufffd compressor", "done"), ("fleet.release", "operator", "mended", "done")]
    assert await place.audited("fleet") == done


async def test_who_may_not_act_cannot_even_with_a_token(place):
    """A key that may only look is refused every form, whatever it sends, and its pages have none."""
    for role in ("runtime", "grader", "auditor"):
        async with place.person(role) as http:
            token = await place.token(http)
            for form in place.forms:
                assert (await place.send(http, form, token=token)).status_code == 403
            assert 'name="because"' not in (await http.get(place.pages[0])).text
    assert (await place.replays(), await place.held_because()) == (0, None)


#: What is wrong with a form or its headers, and the answer.
WRONG_FORMS = (
    ({"token": ""}, {}, 403),
    ({"token": "0" * 64}, {}, 403),
    ({"token": "\ud800"}, {}, 403),
    ({"confirmed": ""}, {}, 422),
    ({"because": "  \n"}, {}, 422),
    ({}, {"sec-fetch-site": "cross-site"}, 403),
    ({}, {"sec-fetch-site": "same-site"}, 403),
    ({}, {"sec-fetch-site": None, "origin": "https://elsewhere.example"}, 403),
    ({}, {"sec-fetch-site": None, "origin": "null"}, 403),
)


async def test_a_form_that_no_page_of_the_session_made_does_nothing(place):
    """Without the session's token, without a confirmation and a reason, or from another site, nothing is replayed."""
    async with place.person("operator") as http:
        token = await place.token(http)
        for fields, headers, status in WRONG_FORMS:
            data = {"because": "mended", "confirmed": "yes", "token": token} | fields
            sent = {k: v for k, v in (place.headers | headers).items() if v is not None}
            for form in place.forms:
                if form.endswith("hold") and "confirmed" in fields:
                    continue  # to hold needs no confirmation: it is the safe side
                answer = await http.post(
                    form,
                    content="&".join(f"{k}={quote(v, errors='surrogatepass')}" for k, v in data.items()),
                    headers=sent | {"content-type": "application/x-www-form-urlencoded"},
                )
                assert answer.status_code == status, (form, fields, headers)
    assert (await place.replays(), await place.held_because()) == (0, None)


async def test_a_token_is_good_for_its_own_session_alone(place):
    """What one session's page carries is refused in another session of the same fleet."""
    async with place.person("operator") as one, place.person("operator") as other:
        assert (await place.replay(one, token=await place.token(other))).status_code == 403
    assert await place.replays() == 0
