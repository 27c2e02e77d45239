"""Why not: what is said of small streams, with numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pyarrow as pa
import pytest

import estero
from estero.answers.why_not import Reason, Step, WhyNot
from estero.recognize.budget import Budget
from estero.recognize.in_process import InProcessRun
from estero.recognize.why_not import WhyNotSearch
from estero.testing import events
from notebooks import shown_by

STREAM = (
    "a(k=1,v=1)@0s b(k=1,v=5)@5s x(k=1)@6s c(k=1,v=59.8)@7s c(k=2,v=70)@8s "
    "a(k=2)@9s b(k=2,v=9)@10s c(k=2,v=50)@200s c(k=1,v=80)@300s"
)


def why_not(where: str, stream: str = STREAM, select: str = "*", **known: object) -> WhyNot:
    answer = estero.query(f"SELECT {select} WHERE {where}").run(
        events(stream),
        type="type",
        time="time",
        **known,  # type: ignore[arg-type]
    )
    return answer.why_not()


def lines(where: str, stream: str = STREAM, select: str = "*") -> list[str]:
    """What is said behind the line of the complex events."""
    return str(why_not(where, stream, select)).splitlines()[1:]


def test_all_of_it_in_words() -> None:
    assert str(why_not("a ; b ; c FILTER c.v > 60 PARTITION BY [k] WITHIN 1 MINUTE")).splitlines() == [
        "no complex event",
        "step 1  a  2 events",
        "step 2  b  2 events",
        "step 3  c  no event",
        "waited for c: 1 event comes to it, none satisfies all its conditions",
        "  c.v > 60 rejects 1; nearest: c.v is 59.8 (events 0 to 3)",
        "  without PARTITION BY [k]: 1 more; for instance events 0 to 4",
        "  without WITHIN 1 MINUTES: 2 more; nearest: events 5 to 7, too long by 2 MINUTES 11 SECONDS",
    ]


def test_each_condition_is_asked_alone_and_a_conjunction_is_taken_apart() -> None:
    assert lines("c FILTER c[v > 100 AND k = 1]") == [
        "waited for c FILTER c[v > 100] AND c[k = 1]: 4 events come to it, none satisfies all its conditions",
        "  c[v > 100] rejects 4; nearest: c.v is 80 (event 8)",
        "  c[k = 1] rejects 2; nearest: c.k is 2 (event 4)",
    ]


def test_what_is_compared_with_an_earlier_part() -> None:
    said = why_not("a ; c FILTER c.v < a.v WITHIN 1 MINUTE")
    assert [each.nearest for each in said.reasons if each.kind == "condition"] == [
        "nearest: c.v is 59.8 and a.v is 1 (events 0 to 3)"
    ]


def test_strings_and_nulls_have_no_distance() -> None:
    assert lines("p FILTER p.s = 'x' AND p.n > 1", "p(s='y')@0s p(s='z')@1s q(n=1)@2s")[-2:] == [
        "  p.s = 'x' rejects 2; nearest: p.s is 'y' (event 0)",
        "  p.n > 1 rejects 2; p.n is NULL",
    ]


def test_a_type_without_events() -> None:
    with pytest.warns(estero.EsteroWarning):
        said = why_not("a ; d ; c")
    assert [(each.kind, each.condition) for each in said.reasons] == [("type", "d")]
    assert "there are no events of type d" in str(said)


def test_contiguity_says_what_came_between() -> None:
    assert lines("a ; b : c")[-1] == "  without : before c: 3 more; nearest: events 1 and 3, with x between"


def test_a_distance_says_how_far_they_were_apart() -> None:
    last = lines("a ; b ;[<= 1 SECONDS] c PARTITION BY [k] WITHIN 1 MINUTE")[-1]
    assert last == "  without [<= 1 SECONDS]: 1 more; nearest: events 1 and 3, 2 SECONDS apart"
    last = lines("a ; b ;[<= 1 EVENTS] c PARTITION BY [k] WITHIN 1 MINUTE")[-2]
    assert last == "  without [<= 1 EVENTS]: 1 more; nearest: events 1 and 3, 2 SECONDS apart"


def test_what_was_forbidden_came_between() -> None:
    said = why_not("a ; b ; NOT(x) ; c PARTITION BY [k] WITHIN 1 MINUTE")
    assert [(each.kind, each.events) for each in said.reasons] == [("absence", 1), ("window", 1)]


def test_an_absence_at_the_end_was_broken_or_is_not_decided() -> None:
    broken = why_not("b ; NOT(c) FOR 1 MINUTE", "b()@0s c()@5s b()@100s c()@159s")
    assert (broken.found, broken.undecided, broken.came) == (0, 0, 0)
    assert [(each.kind, each.events) for each in broken.reasons] == [("absence", 2)]
    waiting = why_not("b ; NOT(c) FOR 1 MINUTE", "b()@0s c()@0s b()@30s b()@31s")
    assert (waiting.found, waiting.undecided) == (0, 2)
    assert "2 more wait for a deadline" in str(waiting)


def test_too_few_rounds() -> None:
    said = why_not("c{3,} FILTER c.v > 60")
    assert [(each.kind, each.events) for each in said.reasons] == [("condition", 2), ("repetition", 2)]


def test_conditions_that_keep_events_away_only_together() -> None:
    said = why_not("a : b PARTITION BY [k] WITHIN 2 EVENTS", "a(k=1)@0s x(k=1)@1s x(k=2)@2s b(k=2)@3s")
    assert [(each.kind, each.events) for each in said.reasons] == [("together", 1)]


def test_events_that_come_in_another_order() -> None:
    assert lines("a ; c WITHIN 1 MINUTE", "c()@0s a()@1s")[-1] == (
        "  no events come as a ; c, even without the conditions"
    )


def test_a_strategy_leaves_out_all() -> None:
    said = why_not("a ; c WITHIN 5 EVENTS", select="STRICT *")
    assert (said.found, said.passed) == (0, 4)
    assert [(each.kind, each.condition) for each in said.reasons] == [("choice", "SELECT STRICT")]


def test_what_is_asked_of_the_whole_is_asked_at_the_end() -> None:
    said = why_not("a ; b ; c FILTER duration > 1 HOUR")
    assert [each.events for each in said.steps] == [2, 2, 0]
    assert str(said).splitlines()[-1] == (
        "  duration > 1 HOUR rejects 4; nearest: duration is 5 MINUTES (events 0 to 8)"
    )


def test_what_is_found_is_said_too() -> None:
    said = why_not("a ; b ; c FILTER c.v > 60 PARTITION BY [k]")
    assert said.found == 1
    assert said.steps[-1].events == said.passed == 1
    assert str(said).splitlines()[0] == "1 complex event"


def test_the_reasons_as_rows_and_in_a_notebook() -> None:
    said = why_not("c FILTER c.v > 100")
    assert said.to_dicts() == [
        {
            "kind": "condition",
            "condition": "c.v > 100",
            "events": 4,
            "nearest": "nearest: c.v is 80 (event 8)",
        }
    ]
    page = shown_by(said)
    assert page.texts("b") == ["No complex event"]
    assert page.all("table") == []
    assert page.texts("p")[1] == (
        "Waited for c FILTER c.v > 100: 4 events come to it, none satisfies all its conditions"
    )
    assert page.texts("li") == ["c.v > 100 rejects 4; nearest: c.v is 80 (event 8)"]
    assert page.texts("code")[-1] == "c.v > 100"
    assert page.texts("span", "digits") == ["100", "100"]


def test_a_notebook_shows_what_the_lines_say() -> None:
    said = WhyNot(
        found=None,
        undecided=2,
        steps=[Step("a", 3), Step("b", None)],
        waited_for="b",
        came=0,
        passed=None,
        reasons=[
            Reason("type", "<b>", 0),
            Reason("order", "a ; b", 0),
            Reason("window", "WITHIN 5 EVENTS", 7, "nearest: too long by 2 EVENTS"),
        ],
        unanswered=["a.v > 5"],
    )
    page = shown_by(said)
    assert page.rows() == [["1", "a", "3"], ["2", "b", "unknown"]]
    spoken = [line.strip().casefold() for line in said.lines()]
    for text in [*page.texts("p"), *page.texts("li")]:
        assert text.casefold() in spoken
    assert len(page.all("p")) + len(page.all("li")) + len(page.rows()) == len(spoken)


def test_a_sample_bounds_what_is_looked_at() -> None:
    answer = estero.query("SELECT * WHERE c FILTER c.v > 100").run(events(STREAM), type="type", time="time")
    (reason,) = answer.why_not(sample=1).reasons
    assert (reason.events, reason.nearest) == (4, "nearest: c.v is 59.8 (event 3)")
    with pytest.raises(ValueError, match="sample must be at least 1, not 0"):
        answer.why_not(sample=0)


def test_it_is_asked_of_whole_answers() -> None:
    query = estero.query("SELECT * WHERE a ; b WITHIN 1 MINUTE")
    stream = events(STREAM)
    answer = query.run(stream, type="type", time="time")
    with pytest.raises(ValueError, match="not a part"):
        answer[:1].why_not()
    with pytest.raises(ValueError, match="ask the answer that these partial matches are of"):
        answer.partials().why_not()
    recognizer = query.recognizer(stream.schema, type="type", time="time")
    with pytest.raises(ValueError, match=r"ask the answer of query\.run"):
        recognizer.push(stream).why_not()


def test_an_absence_that_depends_on_a_later_part_makes_all_of_it_one_part() -> None:
    said = why_not("a ; NOT(x AS y FILTER y.k = c.k) ; b ; c FILTER c.v > 90")
    assert (list(said.steps), said.waited_for.partition(" ")[0], said.came) == ([], "a", 4)
    assert [(each.kind, each.events) for each in said.reasons] == [("condition", 4)]


def test_events_with_a_time_of_integers() -> None:
    stream = pa.table({"type": ["a", "b"], "t": [0, 50]})
    answer = estero.query("SELECT * WHERE a ; b WITHIN 40 [t]").run(stream, type="type", time="t")
    (reason,) = answer.why_not().reasons
    assert reason.nearest == "nearest: events 0 to 1, too long by 10"


def test_parts_that_are_not_kept_are_told_apart() -> None:
    (reason,) = why_not("(A : B) KEEP [A]", "A@0s C@1s B@2s").reasons
    assert (reason.kind, reason.nearest) == ("contiguity", "nearest: events 0 and 2, with C between")


def _slow_clock() -> Budget:
    """Four seconds of a clock that shows a second more whenever it is read."""
    return Budget(4, clock=itertools.count().__next__)


def test_questions_that_take_too_long_are_named_and_the_others_are_answered() -> None:
    number = 400
    stream = pa.table(
        {
            "type": ["a"] * number + ["c"] * number,
            "time": range(2 * number),
            "v": [float(place % number) for place in range(2 * number)],
        }
    )
    answer = estero.query("SELECT * WHERE a ; c FILTER c.v * a.v < 0 AND c.v > 500").run(
        stream, type="type", time="time"
    )
    run = answer._run
    assert isinstance(run, InProcessRun)
    layout = replace(run.source.layout, schema=run.plan.classification.schema)
    said = WhyNotSearch(run, layout, 100, _slow_clock()).explanation()
    assert (said.found, said.came) == (0, number)
    assert said.unanswered == ("c.v * a.v < 0",)
    assert [each.condition for each in said.reasons] == ["c.v > 500"]
    assert str(said).splitlines()[-2:] == [
        "not looked at to the end, as it takes longer than seconds= allows:",
        "  c.v * a.v < 0",
    ]


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_a_time_that_nobody_has(seconds: float) -> None:
    answer = estero.query("SELECT * WHERE a").run(events(STREAM), type="type", time="time")
    with pytest.raises(ValueError, match="seconds must be more than 0"):
        answer.why_not(seconds=seconds)
