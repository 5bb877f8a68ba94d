"""Cases for the verdicts that are told and prune nothing by default: entries as agents write them, with what is right to say of each.

Made after field complaints (finished plans listed as open, commands run again, conditions restated otherwise, work that nobody asked for)
and after the open work in summaries of real coding agents.
"""

from dataclasses import dataclass, field

from winnow.contracts.vocabulary import FindingKind

STALE, REWRITTEN, INVENTED = FindingKind.STALE, FindingKind.REWRITTEN_CONSTRAINT, FindingKind.INVENTED_DELIVERABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An entry, the span it is about, and the flag that belongs to it (None: none does)."""

    entry: str
    right: FindingKind | None
    #: Calls in order: tool, arguments, what came back.
    acts: tuple[tuple[str, str, str], ...] = ()
    task: str = "Work on the project as the user asks."
    users: tuple[str, ...] = ()
    section: str = "Pending Tasks"


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell of which only the commands differ."""

    results: dict[str, str] = field(default_factory=dict)

    def ran(self, *commands: str) -> tuple[tuple[str, str, str], ...]:
        return tuple(("bash", f'{{"command": "{command}"}}', self.results.get(command, "done")) for command in commands)


PUSHED = Shell({
    "git push -u origin main": "branch 'main' set up to track 'origin/main'.",
    "git push -u origin astral": "branch 'astral' set up to track 'origin/astral'.",
    "gh repo create palimondo/BookMinder --public --source=.": "Created repository palimondo/BookMinder on GitHub",
    "pytest -q": "41 passed in 2.11s",
    "pytest specs": "2 failed, 39 passed in 2.3s",
    "./audit.sh --read-only": "exit code 0",
    "npm install": "added 412 packages in 9s",
    "gh pr create --fill": "https://github.com/palimondo/BookMinder/pull/7",
    "rm tmp/debug.log": "",
    "npx tsx src/cli-new.ts": "cli 0.1 is ready",
})  # fmt: skip
EDIT = ("edit_file", '{"path": "bookminder/cli.py", "old": "a", "new": "b"}', "edited")
RULES = """You are the support agent of an airline.
- You must list the action details and obtain explicit user confirmation before any update of the booking database.
- Each reservation can use at most one travel certificate, one credit card and three gift cards.
- Checked bags can be added but not removed, and insurance cannot be added after the initial booking.
- Do not make more than one tool call at a time.
- Send refund requests to refunds@air.example and never to the customer.
"""
BUDGET = "My budget for the upgrade is less than 1000 dollars, please never charge more than 1000 dollars."

CASES = (
    # Finished work listed as open.
    Told(entry="Push both main and astral branches to GitHub", right=STALE,
         acts=PUSHED.ran("git push -u origin main", "git push -u origin astral")),
    Told(entry="Create GitHub repository for BookMinder", right=STALE,
         acts=PUSHED.ran("gh repo create palimondo/BookMinder --public --source=.")),
    Told(entry="[ ] Run the test suite", right=STALE, acts=(EDIT, *PUSHED.ran("pytest -q"))),
    Told(entry="[ ] Run the read-only audit `./audit.sh --read-only`", right=STALE, acts=PUSHED.ran("./audit.sh --read-only")),
    Told(entry="Install dependencies", right=STALE, acts=PUSHED.ran("npm install")),
    Told(entry="Open a pull request", right=STALE, acts=PUSHED.ran("gh pr create --fill")),
    Told(entry="Commit the changes", right=STALE, acts=(EDIT, *PUSHED.ran("git commit -am fix"))),
    Told(entry="Copy `main.ts` to `main-new.ts`", right=STALE, acts=PUSHED.ran("cp src/main.ts src/main-new.ts")),
    Told(entry="Move `library.py` to `apple_books`", right=STALE, acts=PUSHED.ran("git mv library.py apple_books/")),
    Told(entry="[ ] Delete `tmp/debug.log`", right=STALE, acts=PUSHED.ran("rm tmp/debug.log")),
    Told(entry="Test via `npx tsx src/cli-new.ts`", right=STALE, acts=PUSHED.ran("npx tsx src/cli-new.ts")),
    Told(entry="Create `cli-new.ts`", right=STALE, acts=(("write", '{"path": "src/cli-new.ts", "content": "x"}', "written"),)),
    Told(entry="[ ] Cancel reservation K1NW8N", right=STALE,
         acts=(("cancel_reservation", '{"reservation_id": "K1NW8N"}', '{"status": "cancelled"}'),)),
    Told(entry="[ ] Book HAT136 for mia_li_3668", right=STALE,
         acts=(("book_reservation", '{"user_id": "mia_li_3668", "flights": ["HAT136"]}', '{"reservation_id": "HATHAT"}'),)),
    Told(entry="Send the certificate to mia_li_3668", right=STALE,
         acts=(("send_certificate", '{"user_id": "mia_li_3668", "amount": 100}', "Certificate sent"),)),
    # Open work that is open.
    Told(entry="Push both main and astral branches to GitHub", right=None, acts=PUSHED.ran("git push -u origin main")),
    Told(entry="Push both main and astral branches to GitHub", right=None, acts=(*PUSHED.ran("git push -u origin main"), EDIT)),
    Told(entry="[ ] Run the test suite", right=None, acts=(*PUSHED.ran("pytest -q"), EDIT)),
    Told(entry="[ ] Run the test suite", right=None, acts=PUSHED.ran("pytest specs")),
    Told(entry="[ ] Run the test suite with coverage", right=None, acts=PUSHED.ran("pytest -q")),
    Told(entry="Commit the changes", right=None, acts=(*PUSHED.ran("git commit -am fix"), EDIT)),
    Told(entry="Create a test that uses `main-new.ts`", right=None, acts=PUSHED.ran("cp src/main.ts src/main-new.ts")),
    Told(entry="Create unit tests for _get_user_path in library_spec.py", right=None, acts=(EDIT, *PUSHED.ran("pytest -q"))),
    Told(entry="Update CLI acceptance tests to use mocked library functions", right=None, acts=(EDIT, *PUSHED.ran("pytest -q"))),
    Told(entry="Delete the old branch once the pull request is merged", right=None, acts=PUSHED.ran("gh pr create --fill")),
    Told(entry="Test project installation on MacBook Air using uv", right=None, acts=PUSHED.ran("uv sync")),
    Told(entry="[ ] Cancel reservations K1NW8N and S61CZX", right=None,
         acts=(("cancel_reservation", '{"reservation_id": "K1NW8N"}', '{"status": "cancelled"}'),)),
    Told(entry="Install `pwntools` and `gmpy2`", right=None, acts=PUSHED.ran("pip install pwntools")),
    Told(entry="Open a pull request for each work package", right=None, acts=PUSHED.ran("git push -u origin main")),
    Told(entry="Ran the test suite", right=None, acts=PUSHED.ran("pytest -q"), section="Decisions"),
    # Conditions restated otherwise.
    Told(entry="List action details and obtain user confirmation; may update the booking database without explicit confirmation",
         right=None, task=RULES, section="Constraints"),
    Told(entry="You may obtain explicit user confirmation before any update of the booking database", right=REWRITTEN, task=RULES,
         section="Constraints"),
    Told(entry="Each reservation can use at most two travel certificates, 2 credit cards and 5 gift cards", right=None, task=RULES,
         section="Constraints"),
    Told(entry="Insurance can be added after the initial booking", right=REWRITTEN, task=RULES, section="Constraints"),
    Told(entry="Checked bags cannot be added but removed", right=None, task=RULES, section="Constraints"),
    Told(entry="Send refund requests to finance@air.example and never to the customer", right=REWRITTEN, task=RULES, section="Constraints"),
    Told(entry="Refund requests go to finance@air.example", right=REWRITTEN, task=RULES, section="Constraints"),
    Told(entry="Never charge more than 1500 dollars for the upgrade", right=REWRITTEN, users=(BUDGET,), section="Constraints"),
    Told(entry="Make more than one tool call at a time", right=REWRITTEN, task=RULES, section="Constraints"),
    # Conditions restated as they are.
    Told(entry="Insurance cannot be added after the initial booking", right=None, task=RULES, section="Constraints"),
    Told(entry="Explicit confirmation before any update of the booking database", right=None, task=RULES, section="Constraints"),
    Told(entry="Refund requests go to refunds@air.example", right=None, task=RULES, section="Constraints"),
    Told(entry="Never charge more than 1000 dollars for the upgrade", right=None, users=(BUDGET,), section="Constraints"),
    Told(entry="One tool call at a time, no reply to the user in the same turn", right=None, task=RULES, section="Constraints"),
    # Work that nobody asked for.
    Told(entry="[ ] Write a summary report for the stakeholders", right=INVENTED),
    Told(entry="Create a presentation of the findings", right=INVENTED),
    Told(entry="Prepare release notes for the next version", right=INVENTED),
    Told(entry="Generate an architecture diagram", right=INVENTED),
    Told(entry="Draft an email to the maintainers", right=INVENTED),
    Told(entry="Produce a video walkthrough", right=INVENTED),
    Told(entry="Set up a dashboard for the metrics", right=INVENTED),
    # Work that somebody did ask for, and the agent's own.
    Told(entry="[ ] Write a summary report", right=None, users=("please hand in a report when you are done",)),
    Told(entry="Create a diagram of the modules", right=None, task="Document the modules with a flowchart."),
    Told(entry="Create a minimal EPUB test file with TOC structure", right=None),
    Told(entry="Write a script that reproduces the bug", right=None),
    Told(entry="Adding __init__.py files to specs directories", right=None),
)  # fmt: skip
