"""The survey of compaction prompts: data that can be checked, and a page that says what the data say."""

import json
import re

from tests.contract.prompts import DATA, MARKS, QUESTIONS, document
from winnow.client.proxy.recognise import FINGERPRINTS


def test_each_prompt_names_its_source():
    """Commit or release, file, and a grade for each of the four questions; every host once."""
    prompts = json.loads(DATA.read_text())["prompts"]
    for one in prompts:
        assert re.fullmatch(r"[0-9a-f]{40}", one["commit"] or "0" * 40), one["host"]
        assert bool(one["commit"]) != bool(one["release"]), one["host"]
        assert all(one[name] for name in ("file", "why", "source")), one["host"]
        assert set(one["asks"]) == set(QUESTIONS)
        assert set(one["asks"].values()) <= set(MARKS)
        assert one["date"] is None or re.fullmatch(r"202\d-[01]\d(-[0-3]\d)?", one["date"]), one["host"]
    assert len({one["host"] for one in prompts}) == len(prompts)


def test_the_page_is_what_the_data_say():
    """`docs/prompts.md` is made from the data."""
    page = (DATA.parent / "prompts.md").read_text()
    assert page == document(), "the survey changed; if that is meant: python -m tests.contract.prompts > docs/prompts.md"


def test_every_host_that_the_proxy_knows_stands_in_the_survey():
    """Whoever wonders where a fingerprint comes from finds its source."""
    known = " ".join(one["host"].lower() for one in json.loads(DATA.read_text())["prompts"])
    assert all(one.host.replace("-", " ") in known for one in FINGERPRINTS)
