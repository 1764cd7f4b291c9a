"""What does a bad file get told, and where?"""

import time

import pytest

from ci.workflow import WorkflowErrors, load

from .support import PATH, only_problem, problems

JOB = "on: push\njobs:\n  a:\n    runs-on: x\n"

# text, line, column, beginning of the message
REFUSED = {
    "an empty file": ("", 1, 1, "The file is empty"),
    "only a comment": ("# nothing\n", 1, 1, "The file is empty"),
    "a list": ("- a\n", 1, 1, "A mapping was expected"),
    "a text": ("hello\n", 1, 1, "A mapping was expected"),
    "a tab as indentation": ("on: push\njobs:\n\ta: b\n", 3, 1, "A tab cannot indent YAML"),
    "a second document": (JOB + "---\non: push\n", 5, 1, "The file holds a second YAML document"),
    "an open quote": ("on: 'push\n", 2, 1, "The file is not valid YAML"),
    "a NUL": ("on: push\na\0b: 1\n", 2, 2, "The file holds a NUL character"),
    "a control character": ("on: push\n\x01: 1\n", 2, 1, "The file is not valid YAML"),
    "an unsupported tag": (JOB + "    env: {A: !!binary aGk=}\n", 5, 14, "Unexpected tag 'tag:yaml.org,2002:binary'"),
    "a value that is not its tag": (JOB + "    env: {A: !!int x}\n", 5, 14, "The value 'x' is invalid for the type"),
    "an alias without anchor": (JOB + "    env: *nowhere\n", 5, 10, "The alias '*nowhere' has no finished anchor"),
    "an alias inside its own anchor": (JOB + "    env: &e {A: *e}\n", 5, 17, "The alias '*e' has no finished anchor"),
    "a missing jobs": ("on: push\n", 1, 1, "Required property is missing: jobs"),
    "a missing on": ("jobs: {a: {runs-on: x}}\n", 1, 1, "Required property is missing: on"),
    "an empty jobs": ("on: push\njobs: {}\n", 2, 7, "The workflow must contain at least one job"),
    "a null job": ("on: push\njobs:\n  a:\n", 3, 5, "Unexpected value ''"),
    "an unknown key": (JOB + "    stepz: []\n", 5, 5, "Unexpected value 'stepz'. Did you mean 'steps'?"),
    "an unknown event": (
        "on: pusch\njobs: {a: {runs-on: x}}\n",
        1,
        5,
        "Unexpected value 'pusch'. Did you mean 'push'?",
    ),
    "an unknown event among others": ("on: [push, nope]\njobs: {a: {runs-on: x}}\n", 1, 12, "Unexpected value 'nope'"),
    "an unknown event with filters": ("on: {nope: {}}\njobs: {a: {runs-on: x}}\n", 1, 6, "Unexpected value 'nope'"),
    "a filter of another event": ("on: {push: {types: [a]}}\njobs: {a: {runs-on: x}}\n", 1, 13, "Unexpected value 't"),
    "an unknown activity": ("on: {issues: {types: [x]}}\njobs: {a: {runs-on: x}}\n", 1, 23, "Unexpected value 'x'"),
    "a key twice": (JOB + "    RUNS-ON: y\n", 5, 5, "'RUNS-ON' is already defined"),
    "a job twice": (JOB + "  A:\n    runs-on: x\n", 5, 3, "'A' is already defined"),
    "no runs-on": ("on: push\njobs:\n  a:\n    steps: []\n", 4, 5, "Required property is missing: runs-on"),
    "runs-on and uses": (JOB + "    uses: ./w.yml\n", 5, 5, "Unexpected value 'uses'"),
    "a runner group": ("on: push\njobs:\n  a:\n    runs-on: {group: g}\n", 4, 22, "Unexpected value 'group'"),
    "a bad job id": ("on: push\njobs:\n  a.b:\n    runs-on: x\n", 3, 3, "The identifier 'a.b' is invalid"),
    "a reserved job id": ("on: push\njobs:\n  __a:\n    runs-on: x\n", 3, 3, "The identifier '__a' is invalid"),
    "a step that runs and uses": (JOB + "    steps: [{run: a, uses: a/b@c}]\n", 5, 22, "Unexpected value 'uses'"),
    "a step that does neither": (JOB + "    steps: [{name: a}]\n", 5, 13, "There's not enough info to determine"),
    "a step that is a text": (JOB + "    steps: [echo]\n", 5, 13, "Unexpected value 'echo'"),
    "steps as a mapping": (JOB + "    steps: {run: a}\n", 5, 12, "A mapping was not expected"),
    "a step id twice": (
        JOB + "    steps: [{id: s, run: a}, {id: S, run: b}]\n",
        5,
        35,
        "The identifier 'S' may not be",
    ),
    "an action without a version": (JOB + "    steps: [{uses: a/b}]\n", 5, 20, "Expected format {org}/{repo}"),
    "a step from the future": (JOB + "    steps: [{wait-all: }]\n", 5, 24, "Unexpected value 'wait-all'. GitHub knows"),
    "a timeout in words": (JOB + "    timeout-minutes: soon\n", 5, 22, "Unexpected value 'soon'. Write a number"),
    "a negative timeout": (JOB + "    timeout-minutes: -1\n", 5, 22, "The number -1 is too small. Write at least 0"),
    "a negative time to end": (
        JOB + "    cancel-timeout-minutes: -0.5\n",
        *(5, 29, "The number -0.5 is too small. Write at least 0"),
    ),
    "a negative timeout of a step": (
        JOB + "    steps: [{run: a, timeout-minutes: -2}]\n",
        *(5, 39, "The number -2 is too small. Write at least 0"),
    ),
    "an endless timeout": (JOB + "    timeout-minutes: .inf\n", 5, 22, "The number Infinity is too large"),
    "a flag as text": (JOB + "    continue-on-error: 'yes'\n", 5, 24, "Unexpected value 'yes'. Write true or false"),
    "an unknown need": (JOB + "    needs: [b]\n  c: {runs-on: x}\n", 5, 13, "Job 'a' depends on unknown job 'b'."),
    "only jobs with needs": (JOB + "    needs: a\n", 3, 3, "The workflow must contain at least one job with no"),
    "needs in a circle": (
        JOB + "  b: {runs-on: x, needs: [a, b]}\n",
        *(5, 30, "Job 'b' depends on job 'b' which creates a cycle in the dependency graph."),
    ),
    "an empty vector": (
        JOB + "    strategy: {matrix: {v: []}}\n",
        5,
        28,
        "Matrix vector 'v' does not contain any values",
    ),
    "257 legs": (
        JOB + f"    strategy: {{matrix: {{v: {list(range(257))}}}}}\n",
        *(5, 24, "The matrix makes 257 jobs; at most 256 are allowed"),
    ),
    "an unknown exclude key": (
        JOB + "    strategy: {matrix: {v: [1], exclude: [{w: 1}]}}\n",
        *(5, 44, "Matrix exclude key 'w' does not match any key within the matrix"),
    ),
    "a container without image": (JOB + "    container: {options: a}\n", 5, 16, "Container image cannot be empty"),
    "a matrix in a job if": (JOB + "    if: matrix.a\n", 5, 9, "Unrecognized named-value: 'matrix'"),
    "a secret in a step if": (
        JOB + "    steps: [{run: a, if: secrets.a}]\n",
        5,
        26,
        "Unrecognized named-value: 'secrets'",
    ),
    "an open expression": (JOB + "    name: a ${{ b\n", 5, 11, "The expression is not closed"),
    "an expression where none may be": (
        "name: ${{ github.ref }}\n" + JOB,
        1,
        7,
        "A template expression is not allowed",
    ),
    "hashFiles in a job": (
        JOB + "    env: {A: \"${{ hashFiles('a') }}\"}\n",
        5,
        14,
        "Unrecognized function: 'hashFiles'",
    ),
    "an unknown permission": (
        JOB + "    permissions: {content: read}\n",
        5,
        19,
        "Unexpected value 'content'. Did you mean",
    ),
    "write access to models": (
        JOB + "    permissions: {models: write}\n",
        5,
        27,
        "Unexpected value 'write'. Use one of: re",
    ),
    "a bad cron": ("on: {schedule: [{cron: a b}]}\njobs: {a: {runs-on: x}}\n", 1, 24, "Invalid cron expression 'a b'"),
    "a cron too often": (
        "on: {schedule: [{cron: '* * * * *'}]}\njobs: {a: {runs-on: x}}\n",
        1,
        24,
        "The schedule '* *",
    ),
    "a bad time zone": (
        "on: {schedule: [{cron: '0 0 * * *', timezone: Mars}]}\njobs: {a: {runs-on: x}}\n",
        *(1, 47, "Unknown time zone 'Mars'"),
    ),
    "queue max that cancels": (
        "on: push\nconcurrency: {group: g, queue: max, cancel-in-progress: true}\njobs: {a: {runs-on: x}}\n",
        *(2, 32, "'queue: max' and 'cancel-in-progress: true' contradict each other"),
    ),
    "queue max that cancels, of a job": (
        JOB + "    concurrency: {group: g, cancel-in-progress: true, queue: max}\n",
        *(5, 62, "'queue: max' and 'cancel-in-progress: true' contradict each other"),
    ),
    "branches and branches-ignore": (
        "on: {push: {branches: [a], branches-ignore: [b]}}\njobs: {a: {runs-on: x}}\n",
        *(1, 45, "'branches' and 'branches-ignore' cannot both filter one event"),
    ),
    "a choice of nothing": (
        "on: {workflow_dispatch: {inputs: {a: {type: choice}}}}\njobs: {a: {runs-on: x}}\n",
        *(1, 38, "The input 'a' is of type choice"),
    ),
    "options without a choice": (
        "on: {workflow_dispatch: {inputs: {a: {options: [b]}}}}\njobs: {a: {runs-on: x}}\n",
        *(1, 39, "Input type is not 'choice', but 'options' is defined"),
    ),
    "a default of another type": (
        "on: {workflow_dispatch: {inputs: {a: {type: number, default: b}}}}\njobs: {a: {runs-on: x}}\n",
        *(1, 62, "The default of input 'a' does not fit its type number"),
    ),
    "a called workflow with no version": (
        "on: push\njobs: {a: {uses: o/r/w.yml}}\n",
        *(2, 18, "Invalid workflow reference 'o/r/w.yml': no version specified"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_says_what_is_wrong_and_where(name: str) -> None:
    text, line, column, message = REFUSED[name]
    problem = only_problem(text)
    assert (problem.line, problem.column) == (line, column), problem
    assert problem.message.startswith(message), problem


def test_a_merge_key_is_refused_by_name() -> None:
    text = JOB + "    env: {A: &e b}\n  b:\n    runs-on: x\n    env:\n      <<: *e\n"
    problem = only_problem(text)
    assert (problem.line, problem.column) == (9, 7)
    assert problem.message.startswith("Unexpected value '<<'. Merge keys are not supported")


def test_bytes_that_are_not_utf_8_are_refused_at_their_place() -> None:
    problem = only_problem("on: push\nname: Grün\n".encode("latin-1"))
    assert (problem.line, problem.column) == (2, 9)
    assert problem.message.startswith("The file is not UTF-8 (byte 0xfc)")


def test_half_a_surrogate_pair_is_refused() -> None:
    assert "Unicode" in only_problem("on: push\nname: \ud800\n").message


def test_a_file_that_is_not_there_is_a_problem() -> None:
    with pytest.raises(WorkflowErrors, match="The file does not exist"):
        load(PATH, {})


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    found = problems("on: pusch\njobs:\n  a:\n    runs-on: x\n    tmieout-minutes: 1\n  b: {needs: c, runs-on: x}\n")
    assert [problem.line for problem in found] == [1, 5, 6]


def test_ten_problems_are_enough() -> None:
    jobs = "".join(f"  j{number}: {{nope: 1}}\n" for number in range(50))
    assert len(problems(f"on: push\njobs:\n{jobs}")) == 10


def test_a_long_message_is_cut() -> None:
    problem = only_problem(JOB + f"    needs: [{'n' * 5000}]\n  b: {{runs-on: x}}\n")
    assert len(problem.message) == 500
    assert problem.message.endswith("[...]")


def test_it_prints_as_github_does() -> None:
    assert str(only_problem("on: push\n")) == f"{PATH} (Line: 1, Col: 1): Required property is missing: jobs"


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(9)
)
HOSTILE = {
    "an alias bomb of 10^10 nodes": (BOMB, "Maximum object size exceeded"),
    "depth 10,000": ("[" * 10_000, "Maximum object depth exceeded"),
    "depth by block lists": ("- " * 10_000, "Maximum object depth exceeded"),
    "depth by aliases": (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]\n" for n in range(1, 500)),
        "Maximum object depth exceeded",
    ),
    "5 MB": ("on: push\n#" + "x" * 5_000_000, "The maximum file size of 1048576 characters has been exceeded"),
    "as many nodes as fit": ("[" + "a," * 520_000 + "]", "Maximum object size exceeded"),
    "many jobs": (
        "on: push\njobs:\n" + "".join(f" a{n}: {{runs-on: x}}\n" for n in range(1001)),
        "Workflows may not contain more",
    ),
    "a huge product with excludes": (
        JOB
        + "    strategy: {matrix: {"
        + ", ".join(f"k{n}: [1,2,3,4,5,6,7,8,9]" for n in range(40))
        + ", exclude: [k1: 1]}}",
        "The matrix makes",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_quickly(name: str) -> None:
    text, message = HOSTILE[name]
    started = time.thread_time()
    problem = problems(text)[0]
    assert problem.message.startswith(message), problem
    assert time.thread_time() - started < 20


def test_every_need_that_keeps_a_circle_from_starting_is_named() -> None:
    found = problems(
        JOB + "  b: {runs-on: x, needs: [a, c]}\n  c: {runs-on: x, needs: b}\n  d: {runs-on: x, needs: c}\n"
    )
    assert [(problem.line, problem.message.split(" which")[0]) for problem in found] == [
        (5, "Job 'b' depends on job 'c'"),
        (6, "Job 'c' depends on job 'b'"),
        (7, "Job 'd' depends on job 'c'"),
    ]
