"""What the keyless model corrects: one value that a sentence of the evidence has otherwise."""

from __future__ import annotations

import pytest

from stepcraft import RatContext, build_rat
from stepcraft.models.keyless.correction import corrected, sentence
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
        ("You reach the service desk on Fridays only until 3pm.", "You reach the service desk on Fridays only until 4pm.", "p1"),
        ("Calls are answered within 30 minutes.", "Calls are answered within 20 minutes.", "p1"),
        ("A change goes out when 3 reviewers have approved it.", "A change goes out when two reviewers have approved it.", "p2"),
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
        "Ask on Mondays.",
        "Nothing is said.",
    ],
)
def test_what_may_be_of_something_else_stays(statement: str) -> None:
    assert corrected(sentence(statement), EVIDENCE) is None


def test_two_sentences_that_differ_correct_nothing() -> None:
    texts = ["Green tea is steeped for 2 minutes.", "Green tea is steeped for 4 minutes."]
    evidence = [sentence(text) for text in texts]
    assert corrected(sentence("Green tea is steeped for 3 minutes."), evidence) is None


POLICY = """\
The billing service is owned by the Payments team. It retries a declined card three times, on days 1, 3 and 7. \
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
