"""Does a whole workflow, with what it calls, run on real runners as on GitHub?"""

from __future__ import annotations

from ci.workflow import load
from ci.workflow.workflow import Event
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer
from tests.runner.whole_runs import WholeRun

CALLER = """
on: push
env: {TOP: caller}
jobs:
  list:
    runs-on: x
    outputs: {words: '${{ steps.w.outputs.words }}'}
    steps:
      - {id: w, run: 'echo words=[\\"a\\",\\"b\\"] >> $GITHUB_OUTPUT'}
  call:
    needs: list
    strategy:
      matrix: {word: '${{ fromJSON(needs.list.outputs.words) }}'}
    uses: ./.github/workflows/called.yml
    with: {word: '${{ matrix.word }}', loud: true}
    secrets: {key: '${{ secrets.OUTER }}'}
  after:
    needs: [call, never]
    if: always()
    runs-on: x
    steps:
      - run: |
          test '${{ needs.call.outputs.said }}' = 'B!'
          test '${{ needs.call.result }}/${{ needs.never.result }}' = 'success/skipped'
  never:
    needs: call
    if: needs.call.outputs.said == 'nothing'
    runs-on: x
    steps: [{run: exit 1}]
"""

CALLED = """
on:
  workflow_call:
    inputs:
      word: {type: string, required: true}
      loud: {type: boolean}
      mark: {type: string, default: '!'}
    secrets: {key: {required: true}}
    outputs:
      said: {value: '${{ jobs.say.outputs.said }}'}
env: {OWN: called}
defaults: {run: {shell: python}}
jobs:
  say:
    runs-on: x
    outputs: {said: '${{ steps.s.outputs.said }}'}
    env: {KEY: '${{ secrets.key }}'}
    steps:
      - id: s
        run: |
          import os
          assert os.environ['KEY'] == 'outer-secret' and os.environ['OWN'] == 'called' and 'TOP' not in os.environ
          word = '${{ inputs.word }}'
          said = word.upper() if ${{ inputs.loud && 'True' || 'False' }} else word
          print('said=' + said + '${{ inputs.mark }}', file=open(os.environ['GITHUB_OUTPUT'], 'a'))
"""


def test_a_called_workflow_has_its_own_env_defaults_inputs_and_secrets_and_gives_outputs_back(
    server: FakeServer, runners: Runners
) -> None:
    files = {".github/workflows/caller.yml": CALLER, ".github/workflows/called.yml": CALLED}
    workflow = load(".github/workflows/caller.yml", files)
    run = WholeRun(server, Event("push", {"event": {}}), secrets={"OUTER": "outer-secret"})
    runners.start("run")
    assert run.run(workflow) == "success", run.text
    assert [job.payload["job"]["name"] for job in run.jobs] == ["list", "say", "say", "after"]
    assert "outer-secret" not in run.text
