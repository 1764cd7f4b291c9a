"""Do the forge's pages show how the runs of a commit went?"""

import pytest


@pytest.fixture
def with_ci(settings):
    settings.COMMIT_STATES = "ci.lifecycle.commit_states.states_of_commits"


def test_the_newest_commit_lists_and_branches_show_the_state(with_ci, playground, signed_in):
    run = playground.run()
    client = signed_in("alice")
    sha = run.sha
    pages = ["/", "tree/main", "commits/main", f"commit/{sha}/", "branches/"]
    for page in pages:
        shown = client.get(f"/alice/widgets/{page.lstrip('/')}").content.decode()
        assert "chip-queued" in shown, page
    playground.work(playground.runner(), {"build": "failure"})
    for page in pages:
        shown = client.get(f"/alice/widgets/{page.lstrip('/')}").content.decode()
        assert "chip-failure" in shown, page
        assert "/alice/widgets/actions/runs/" in shown, page


def test_a_commit_without_runs_has_no_chip(with_ci, playground, signed_in):
    playground.push({"a": "1"})
    assert "chip-" not in signed_in("alice").get("/alice/widgets/").content.decode()
