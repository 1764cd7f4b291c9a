"""Do many who ask at once share a question, and does each get its own answer?"""

import asyncio

import pytest

from ci.waiting.gathering import Gathering
from ci.waiting.turns import Turns


def test_who_asks_while_a_question_is_under_way_shares_the_next():
    asked = []

    async def answer(questions):
        asked.append(list(questions))
        await asyncio.sleep(0)
        return [question * 10 for question in questions]

    async def ask():
        gathering = Gathering(answer, float)
        return await asyncio.gather(*(gathering.ask(number) for number in range(50)))

    assert asyncio.run(ask()) == [number * 10 for number in range(50)]
    assert asked == [list(range(50))]


def test_a_failure_is_everybodys_and_the_next_question_is_asked_anew():
    async def answer(questions):
        if 0 in questions:
            raise ValueError
        return questions

    async def ask():
        gathering = Gathering(answer, float)
        failed = await asyncio.gather(gathering.ask(0), gathering.ask(1), return_exceptions=True)
        assert [type(error) for error in failed] == [ValueError, ValueError]
        return await gathering.ask(2)

    assert asyncio.run(ask()) == 2


def test_who_no_longer_waits_for_the_answer_harms_nobody():
    async def answer(questions):
        await asyncio.sleep(0)
        return questions

    async def ask():
        gathering = Gathering(answer, float)
        gone, staying = asyncio.create_task(gathering.ask(1)), asyncio.create_task(gathering.ask(2))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await staying

    assert asyncio.run(ask()) == 2


class Heard:
    pid, payload = 4711, "5:7:70"


def test_of_all_that_hear_of_a_job_it_is_the_turn_of_one():
    hubs = [Turns() for _ in range(3)]
    for place, hub in enumerate(hubs):
        hub._place, hub._count = place, 3
    # The turn passes on with the seconds; within one all agree.
    assert any(sorted(hub.is_mine(Heard()) for hub in hubs) == [False, False, True] for _ in range(1000))


def test_alone_it_is_always_ones_turn():
    assert Turns().is_mine(Heard())
