"""What the keyless model corrects: one value that a sentence of the evidence has otherwise."""

from __future__ import annotations

import pytest

from stepcraft import RatContext, build_rat, build_rpg
from stepcraft.models.keyless.correction import corrected, sentence, supports
from tests.shelf import Shelf

EVIDENCE = [
    sentence(text, title, f"p{number}")
    for number, (title, texts) in enumerate(
        [
            ("Hours of the service desk", ["The desk is open from 9am until 4pm on Fridays.", "On other days it closes at 6pm.", "Calls are answered within 20 minutes."]),
            ("Deploying", ["A change goes out when two reviewers have approved it.", "The pipeline deploys it every Tuesday at 10am.", "The test must pass on 95 % of the runs."]),
            ("Bridges", ["The Oster bridge was built by Haldruvin in 1873.", "It cost $4,000 and took 3 years.", "Black tea is steeped for four minutes."]),
        ],
        1,
    )
    for text in texts
]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "right", "place"),
    [
        ("Calls are answered within 30 minutes.", "Calls are answered within 20 minutes.", "p1"),
        ("The pipeline deploys every Monday at 10am.", "The pipeline deploys every Tuesday at 10am.", "p2"),
        ("The test must pass on 90 % of the runs.", "The test must pass on 95 % of the runs.", "p2"),
        ("The Oster bridge was built by Quandt in 1873.", "The Oster bridge was built by Haldruvin in 1873.", "p3"),
        ("The Oster bridge was built by Haldruvin in 1837.", "The Oster bridge was built by Haldruvin in 1873.", "p3"),
    ],
)  # fmt: skip
def test_one_value_is_corrected(statement: str, right: str, place: str) -> None:
    assert corrected(sentence(statement), EVIDENCE) == (right, place)


@pytest.mark.parametrize(
    "statement",
    [
        "Calls are answered within 20 minutes.",
        "The Oster bridge was built by Quandt in 1837.",  # two values
        "The Oster bridge was not built in 1900.",  # another sense
        "Green tea is steeped for three minutes.",  # of something else
        "The bridge is 40 metres long.",
        "You reach the service desk on Fridays only until 3pm.",  # in other words
        "A change goes out when 3 reviewers have approved it.",  # a condition
        "Ask on Mondays.",
        "Nothing is said.",
    ],
)
def test_what_may_be_of_something_else_stays(statement: str) -> None:
    assert corrected(sentence(statement), EVIDENCE) is None


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("The free plan has a limit of 15 functions.", "15", "25"),
        ("If you need logs for longer, the team keeps them for a period of 60 days.", "60", "30"),
        ("For free accounts, the retention period is only 15 days.", "15", "7"),
        ("The proxy manages 90-day certificates and starts renewing them 14 days before they expire.", "14", "30"),
    ],
)  # fmt: skip
def test_limits_and_finished_conditions_are_corrected(text: str, wrong: str, right: str) -> None:
    evidence = [sentence(text.replace(wrong, right), place="p1")]
    assert corrected(sentence(text), evidence) == (text.replace(wrong, right), "p1")


@pytest.mark.parametrize("word", ["If", "When", "Unless"])
def test_a_value_in_a_condition_stays(word: str) -> None:
    text = f"{word} the queue holds 15 messages, the worker stops."
    evidence = [sentence(text.replace("15", "25"))]
    assert corrected(sentence(text), evidence) is None


@pytest.mark.parametrize("label", ["version ", "HTTP/", "step "])
def test_the_number_of_a_name_stays(label: str) -> None:
    text = f"The proxy has been tested with {label}2 of all the clients that we could get hold of."
    evidence = [sentence(text.replace("2", "3"))]
    assert corrected(sentence(text), evidence) is None


def test_two_sentences_that_differ_correct_nothing() -> None:
    texts = ["Green tea is steeped for 2 minutes.", "Green tea is steeped for 4 minutes."]
    evidence = [sentence(text) for text in texts]
    assert corrected(sentence("Green tea is steeped for 3 minutes."), evidence) is None


POLICY = """\
# Billing
The service is owned by the Payments team. It retries a declined card three times, on days 1, 3 and 7. \
Invoices are issued in EUR every Tuesday at 10:00 CET. Full backups are kept for 35 days; incremental backups are \
kept for 7 days. Version 2 was retired on 30 June 2024."""


def checked(draft: str) -> tuple[list[str], str]:
    """Return the verdicts of the keyless model, and the answer."""
    graph = build_rat(sources=Shelf(passages={"billing": POLICY}))
    question = "What is the policy of billing?"
    result = graph.invoke({"question": question, "draft": draft}, context=RatContext())
    return [each["verdict"] for each in result["checks"]], result["answer"]


@pytest.mark.parametrize(
    "false",
    [
        "The billing service is owned by the Security team.",
        "The billing service retries a declined card four times, on days 1, 3 and 7.",
        "Invoices of billing are issued in GBP every Tuesday at 10:00 CET.",
        "Invoices of billing are issued in EUR every Tuesday at 10:00 UTC.",
        "The billing service is not owned by the Payments team.",
        "The billing service is owned by the Payments team and by Microsoft.",
    ],
)
def test_what_the_evidence_says_otherwise_is_not_supported(false: str) -> None:
    assert "supported" not in checked(false)[0]


@pytest.mark.parametrize(
    ("text", "other", "is_same"),
    [
        ("Alice reports to Bob.", "Bob reports to Alice.", False),
        ("Admins can delete keys, editors cannot.", "Editors can delete keys, admins cannot.", False),
        ("Retry before you alert.", "Alert before you retry.", False),
        ("Use Postgres instead of SQLite.", "Use SQLite instead of Postgres.", False),
        ("The server listens on port 80 by default.", "By default, the server listens on port 80.", True),
        ("It listens by default on port 80.", "It listens on port 80 by default.", True),
        ("The server locally keeps data.", "The server keeps data locally.", True),
        ("Only admins can see keys.", "Admins can see only keys.", False),
        ("On Fridays the desk is closed.", "The desk is closed on Fridays.", True),
    ],
)  # fmt: skip
def test_what_is_turned_round_is_not_supported(text: str, other: str, is_same: bool) -> None:
    assert supports(sentence(text), sentence(other)) == is_same


@pytest.mark.parametrize(
    ("false", "right"),
    [
        ("Full backups of billing are kept for 90 days.", "Full backups of billing are kept for 35 days."),
        ("Version 2 of billing was retired on 15 May 2023.", "Version 2 of billing was retired on 30 June 2024."),
    ],
)  # fmt: skip
def test_a_date_and_half_a_sentence_are_corrected(false: str, right: str) -> None:
    assert checked(false) == (["contradicted"], right)


def test_what_the_evidence_says_is_supported() -> None:
    right = "The billing service is owned by the Payments team."
    assert checked(right) == (["supported"], right)


@pytest.mark.parametrize("label", ["Answer: ", "**Answer:** ", "**Answer**: ", "answer: "])
def test_the_label_of_a_short_answer_is_not_part_of_the_statement(label: str) -> None:
    right = f"{label}Full backups of billing are kept for 35 days."
    assert checked(right) == (["supported"], right)
    assert checked(right.replace("35", "90")) == (["contradicted"], right)


@pytest.mark.parametrize("stops", [("", "."), (".", ""), ("", "")])
def test_a_sentence_without_a_full_stop_is_corrected(stops: tuple[str, str]) -> None:
    ours, theirs = (f"The limit of uploads is {{}} days{stop}" for stop in stops)
    assert decided(ours.format(14), theirs.format(30)) == ours.format(30)
    graph = build_rat(sources=Shelf(passages={"uploads": f"# Limits\n\n- {theirs.format(30)}"}))
    result = graph.invoke({"question": "Which uploads?", "draft": ours.format(14)})
    assert result["answer"] == ours.format(30)


TRUE = ["The limit is {v} for uploads.", "The store opens at {v}.", "Backups are kept for {v}."]
VALUES = [("30 days", "7 days"), ("$10", "$25"), ("9:00", "11:00"), ("five", "9"), ("5%", "15%")]
QUALIFIERS = [
    "on Saturdays",
    "for guests",
    "per month",
    "in safe mode",
    "if compressed",
    "at night",
]


@pytest.mark.parametrize("template", TRUE)
@pytest.mark.parametrize("values", VALUES)
def test_a_sentence_with_a_qualifier_decides_nothing(
    template: str, values: tuple[str, str]
) -> None:
    ours, theirs = (template.format(v=value) for value in values)
    for qualifier in QUALIFIERS:
        for other in (f"{theirs[:-1]} {qualifier}.", f"{qualifier.capitalize()}, {theirs}"):
            assert decided(ours, other) is None
            assert decided(other, ours) is None
        assert decided(f"{ours[:-1]} {qualifier}.", f"{theirs[:-1]} otherwise.") is None
    for name in ("admin", "new", "Pro"):
        assert decided(ours, theirs.replace(" ", f" {name} ", 1)) is None
    assert decided(f"If {ours}", f"If {theirs}") is None
    assert decided(ours.replace(".", "?"), theirs.replace(".", "?")) is None
    assert decided(ours, theirs.replace(".", "?")) is None


def decided(statement: str, *evidence: str) -> str | None:
    """Return "supported", the corrected statement, or None."""
    read, sentences = sentence(statement), [sentence(text, "", "p1") for text in evidence]
    if any(supports(each, read) for each in sentences):
        return "supported"
    change = corrected(read, sentences)
    return change and change[0]


OPPOSITES = [
    *("before/after", "on/off", "all/some", "at most/at least", "once/twice", "above/below"),
    *("into/out of", "up/down", "few/more", "during/until", "he/she", "under/over", "both/each"),
    *("increases/decreases", "granite/steel", "is/is not", "only/also", "5 s/5 ms", "5 t/5 s"),
    *("5 MB/5 Mb", "5 °C/5 °F", "-5/5", ".5/5", "−5/5", "<5/>5", "10MB/20MB", "30s/60s"),
    *("v1.2/v2.2", "v3.1/v3.10", "A4/A5", "x = 5/x != 5", "m²/m³", "$5/€5", "5%/5", "C/C++"),
    *("1.2.3/1.2.4", "10–20/20–10", "9:00 to 17:00/17:00 to 9:00", "5 May/6 May", "9 am/9 pm"),
    *("Plan A/Plan B", "vitamin A/vitamin K", "version 2/version 3", "Windows 10/Windows 11"),
    *("1958年/1985年", "三十日/十三日", "数据保存30天/数据保存60天", "포트 80에서/포트 90에서"),
]


@pytest.mark.parametrize("pair", OPPOSITES)
@pytest.mark.parametrize("form", ["{} the old pump stops.", "The old pump of the town, {}, stops."])
def test_opposites_units_signs_and_glued_numbers_differ(pair: str, form: str) -> None:
    ours, theirs = (form.format(part) for part in pair.split("/"))
    assert decided(ours, theirs) is None
    assert decided(theirs, ours) is None
    assert decided(ours, ours) == decided(theirs, theirs) == "supported"


@pytest.mark.parametrize(
    "forms",
    [
        ["2024-05-05", "5 May 2024", "May 5, 2024", "5th May 2024", "May 5th 2024"],
        ["9 am", "9:00 a.m.", "09:00", "9:00", "9AM"],
        ["15:00", "3 pm", "3:00 p.m."],
        ["50%", "50 percent", "50 %", "50 per cent"],
        ["1,000 users", "1000 users"],
        ["two days", "2 days"],
    ],
)
def test_notations_of_one_value_are_equal(forms: list[str]) -> None:
    for ours in forms:
        for theirs in forms:
            statement = f"The gate is open from {ours} in spring."
            assert decided(statement, f"The gate is open from {theirs} in spring.") == "supported"


@pytest.mark.parametrize(
    "pair",
    [
        "1.000|1,000",
        "40|40.2",
        "3:00|3 pm",
        "3:00|15:00",
        "5 May|May 5, 2024",
        "10.00|10",
        "2.5|25",
    ],
)
def test_values_that_may_be_equal_are_not_changed(pair: str) -> None:
    ours, theirs = (f"The gate is open from {part} in spring." for part in pair.split("|"))
    assert decided(ours, theirs) is None
    assert decided(theirs, ours) is None


@pytest.mark.parametrize(
    ("statement", "other", "right"),
    [
        ("Doors open at 9:00 a.m. daily.", "Doors open at 10:00 daily.", None),  # no verb known
        ("The shop opens at 10:00.", "The shop opens at 9:00 a.m.", "The shop opens at 9:00 a.m."),
        ("The shop opens at 10 a.m.", "The shop opens at 9:00.", "The shop opens at 9:00."),
        ("It is 7 degrees.", "It is -5 degrees.", None),  # where?
        ("The vault is kept at 7 degrees.", "The vault is kept at -5 degrees.", "The vault is kept at -5 degrees."),
        ("The vault is kept at -5 degrees.", "The vault is kept at 7 degrees.", "The vault is kept at 7 degrees."),
        ("The fee is $1,200 for adults.", "The fee is $12 for adults.", "The fee is $12 for adults."),
        ("The fee is $5 for 2 hours.", "The fee is $5 for 3 hours.", None),  # both may be true
        ("The limit is 10 on Monday.", "The limit is 10 on Sunday.", None),
        ("The shop is closed on Monday.", "The shop is closed on Sunday.", None),
        ("The limit is not 10.", "The limit is not 20.", None),
        ("Version 2 was free in May.", "Version 3 was free in May.", None),
        ("Users who are in group 3 pay.", "Users who are in group 4 pay.", None),
        ("The wait is about 10 minutes.", "The wait is about 12 minutes.", None),
        ("The wait is ~10 minutes.", "The wait is ~12 minutes.", None),
    ],
)  # fmt: skip
def test_a_value_is_changed_where_nothing_else_can_be_meant(
    statement: str, other: str, right: str | None
) -> None:
    assert decided(statement, other) == right


def test_a_heading_adds_only_what_its_sentences_leave_out() -> None:
    shelf = "# Ports of the admin server\nThe server uses port 80. The admin server uses port 90."
    graph = build_rat(sources=Shelf(passages={"server": shelf}))
    result = graph.invoke({"question": "Ports?", "draft": "The admin server uses port 80."})
    assert [each["verdict"] for each in result["checks"]] == ["not found"]


def test_each_sentence_of_a_part_may_have_a_passage_of_its_own() -> None:
    shelf = Shelf(
        passages={
            "order": "Letters to one house keep their order.",
            "return": "Letters that return are sent again after 5 minutes.",
        }
    )
    question = "What about the order of letters to one house, and letters that return?"
    result = build_rpg(sources=shelf).invoke({"question": question})
    assert len(result["evidence"]) == 2
    assert [each["supported"] for each in result["sentences"]] == [True, True]
