"""Changes of numbered parts: a reply cannot corrupt the text outside of the words that it changes."""

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.nodes.split import split_blocks
from stepcraft.text.changes import Edited, apply_changes, read_changes
from stepcraft.text.edits import Change
from stepcraft.text.markdown import code_blocks, lines
from stepcraft.text.thoughts import split_thoughts
from tests.scripted import block

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
BARE_TABLE = "a | b\n--- | ---\n1 | 2\n\n"
LIST = "1. a\n2. b\n3. c\n"
CODE = "```py\nclass A:\n    def f(self):\n        return 1\n```\n"
CONFLICT = (
    "A conflict:\n\n```\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic\n```\n\nPick a side.\n"
)


def changed(parts: list[str], reply: str, between: str = "") -> tuple[Edited, list[str]]:
    """Return the parts after a reply, and why changes were refused."""
    changes, problems, _ = read_changes(reply, parts)
    edited = apply_changes(parts, changes, between)
    return edited, [problem.reason for problem in [*problems, *edited.refused]]


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("It has 18 arches and 8 towers.", "8", "9", "It has 18 arches and 9 towers."),
        ("It is 8.5 m wide; arches: 8", "8", "9", "It is 8.5 m wide; arches: 9"),
        ("It is 1.8 m wide; arches: 8", "8", "9", "It is 1.8 m wide; arches: 9"),
        ("A  b c.\n\n  D e f.", "A b c.\n\nD e f.", "A b c.\nD e g.", "A  b c.\n  D e g."),
        ("Version 11.0, then version 1.0.", "1.0", "2.0", "Version 11.0, then version 2.0."),
        ("\u5b83\u57281837\u5e74\u5efa\u6210\u3002", "1837", "1873", "\u5b83\u57281873\u5e74\u5efa\u6210\u3002"),
        ("Say \u201ca \u2013 b\u201d now", '"a - b"', '"c"', "Say \u201cc\u201d now"),
        # Quotes and dashes stay where the words next to them change, unless only they change.
        ("Say \u201ca is 10\u201d now", '"a is 10" now', '"a is 77" now', "Say \u201ca is 77\u201d now"),
        ("Open 9:00\u201317:30.", "Open 9:00-17:30", "Open 9:00-18:30", "Open 9:00\u201318:30."),
        ("It\u2019s Ann\u2019s.", "It's Ann's", "It's Bob's", "It\u2019s Bob\u2019s."),
        ("It\u2019s \u201c10\u201d.", "It\u2019s \u201c10\u201d", "It's \"77\"", "It\u2019s \u201c77\u201d."),
        ("It is 3-5 km.", "3-5", "3\u20135", "It is 3\u20135 km."),
        ("At \u22125 \u00b0C", "-5", "-7", "At \u22127 \u00b0C"),
        ("x = 'a'", "'a'", "`b`", "x = `b`"),
        ("a  b", "a  b", "a c", "a c"),
        # Further lines of one line's replacement are indented like it.
        ("```\nf:\n    x = 1\n```\n", "x = 1", "x = 2\ny = 3", "```\nf:\n    x = 2\n    y = 3\n```\n"),
        ("```\nf:\n    x = 1\n```\n", "x = 1", "x = 2\n    y = 3", "```\nf:\n    x = 2\n    y = 3\n```\n"),
        ("```\nf:\n    x = 1\n```\n", "x = 1", "if a:\n    x = 2", "```\nf:\n    if a:\n        x = 2\n```\n"),
        ("```\nf:\n    x = 1\n```\n", "    x = 1", "    x = 2\ny = 3", "```\nf:\n    x = 2\ny = 3\n```\n"),
        ("```\nf:\n\tx = g(1)\n```\n", "g(1)", "g(\n\t1,\n)", "```\nf:\n\tx = g(\n\t\t1,\n\t)\n```\n"),
        ("```\nf:\n    x\n    y\n```\n", "    x\n    y", "  x\n  y", "```\nf:\n  x\n  y\n```\n"),
        ("- x\n  - a: 1\n- y\n", "- a: 1", "- a: 7\n- b: 3", "- x\n  - a: 7\n  - b: 3\n- y\n"),
        ("- x\n  - a: 1\n- y\n", "a: 1", "a: 7\n\nB.\n- b", "- x\n  - a: 7\n\n    B.\n  - b\n- y\n"),
        ("> A 8.\r\n> B.\r\n", "A 8.", "A 9.\n\nC.", "> A 9.\r\n>\r\n> C.\r\n> B.\r\n"),
        ("!!! note\n    A. B.\n", "B.", "C.\nD.", "!!! note\n    A. C.\n    D.\n"),
        ("- a\n- b\n", "\n- a\n", "\n- c\n", "- c\n- b\n"),
        ("At \uff11\uff18\uff13\uff17 it fell", "1837", "1873", "At 1873 it fell"),
        ("\uff76\uff9e\uff7d\u306f\u201c10\u201d", "\u30ac\u30b9\u306f\"10\"", "\u30ac\u30b9\u306f\"20\"", "\uff76\uff9e\uff7d\u306f\u201c20\u201d"),
        ("caf\u0065\u0301 x", "caf\u00e9 x", "tea", "tea"),
        # Normal forms, vowel signs and the direction of writing make no difference.
        ("\u1100\u1161\u1102\u1161 10", "\uac00\ub098 10", "tea", "tea"),
        ("\u0e17\u0e35\u0e48\u0e08\u0e2d\u0e14 5 \u0e17\u0e35", "\u0e17\u0e35", "\u0e17\u0e32", "\u0e17\u0e35\u0e48\u0e08\u0e2d\u0e14 5 \u0e17\u0e32"),
        ("\u0642\u0628\u0644 \u2066API\u2069 10", "\u0642\u0628\u0644 API 10", "\u0642\u0628\u0644 API 20", "\u0642\u0628\u0644 \u2066API\u2069 20"),
        ("a\tb  c", "a b c", "d", "d"),
        ("It is a\tb now", " a b ", " c ", "It is c now"),
        ("It is so", "It is so", "It is So", "It is So"),
        ("A.\r\n\r\nB c.\r\n", "A.\n\nB c.", "B.\n\nC.", "B.\r\n\r\nC.\r\n"),
        ("Built [p3] in 1837.", "[p3] in 1837", "[p4] in 1873", "Built [p4] in 1873."),
        ("x = 1\n", '"x = 1"', '"x = 2"', "x = 2\n"),
        ("x = 1\n", "```\nx = 1\n```", "```\nx = 2\n```", "x = 2\n"),
        ("Title\n=====\n\nx\n", "Title\n=====", "Head\n====", "Head\n====\n\nx\n"),
        ("---\ntitle: A\n---\n\nx\n", "title: A", "title: B", "---\ntitle: B\n---\n\nx\n"),
        ("```mermaid\na --> b\n```\n", "a --> b", "a --> c", "```mermaid\na --> c\n```\n"),
        (BARE_TABLE, "1 | 2", "1 | 3", BARE_TABLE.replace("2", "3")),
        (CONFLICT, "ours\n=======\ntheirs", "a\n=======\nb", CONFLICT.replace("ours", "a").replace("theirs", "b")),
        (CONFLICT, ">>>>>>> topic", ">>>>>>> main", CONFLICT.replace("topic", "main")),
        (CONFLICT, "Pick", "Choose", CONFLICT.replace("Pick", "Choose")),
        # Blanks of the text stay where the words are the same.
        (CODE, "def f(self):\n    return 1", "def f(self):\n    return 2", CODE.replace("1", "2")),
        (CODE, "def f(self):\n    return 1", "def f(self):\n    x = 1\n    return x",
         CODE.replace("return 1", "x = 1\n        return x")),
        ("```make\nall:\n\tcc a.c\n\tld a.o\n```\n", "all:\n    cc a.c", "all:\n    cc b.c",
         "```make\nall:\n\tcc b.c\n\tld a.o\n```\n"),
        ("- a\n  - b\n  - c\n- d\n", "- b\n- c", "- B\n- c", "- a\n  - B\n  - c\n- d\n"),
        ("a\tb\tc\nd\te\tf\n", "d e f", "d e g", "a\tb\tc\nd\te\tg\n"),
        ("Built in _1837_ by H.\n", "1837", "1873", "Built in _1873_ by H.\n"),
        ("It is **very** tall.", "very", "", "It is tall."),
        ("```py\n...  # later\n```\n", "# later", "", "```py\n...\n```\n"),
        # What begins like a list item or a heading is just code there.
        ("```\n* * * * * backup.sh\n```\n", "* * * * * backup.sh", "0 3 * * * backup.sh", "```\n0 3 * * * backup.sh\n```\n"),
        ("```yml\n- name: web\n```\n", "- name: web", "name: web", "```yml\nname: web\n```\n"),
        ("```yml\n- name: web\n- name: db\n```\n", "- name: web", "name: api", "```yml\n- name: api\n- name: db\n```\n"),
        ("```yml\n- /etc/a\n```\n", "- /etc/a", "/etc/b", "```yml\n- /etc/b\n```\n"),
        ("```md\n1. Mix\n```\n", "1. Mix", "Stir", "```md\n1. Stir\n```\n"),
        ("```md\n## Title\n```\n", "## Title", "Head", "```md\n## Head\n```\n"),
        ("```py\n(a\n - b)\n```\n", "- b", "/ c", "```py\n(a\n / c)\n```\n"),
        ("```yml\n# replicas: 3\n```\n", "# replicas: 3", "replicas: 3", "```yml\nreplicas: 3\n```\n"),
        ("```py\n# TODO: a\n```\n", "# TODO: a", "a = 1\nb = 2", "```py\na = 1\nb = 2\n```\n"),
        ("```py\n# It is 8\n```\n", "# It is 8", "It is 9", "```py\n# It is 9\n```\n"),
        ("```py\nf(x)\n```\n", "f(x)", "f(x, **y)", "```py\nf(x, **y)\n```\n"),
        ("Call `f(x)` or `y`.", "f(x)", "f(x, **y)", "Call `f(x, **y)` or `y`."),
        ("```jsx\n<p>\n```\n", "<p>", "<div>", "```jsx\n<div>\n```\n"),
        ("```sh\nrsync \u2013av a b\n```\n", "rsync \u2013av a b", "rsync -av a c", "```sh\nrsync -av a c\n```\n"),
        # A removal takes the blanks and the line that it would leave empty.
        ("A b c, d.", "c", "", "A b, d."),
        ("A b c d.", "b", "", "A c d."),
        ("A.\n\nB.\n\nC.\n", "B.", "", "A.\n\nC.\n"),
        ("A.\r\n\r\nB.\r\n\r\nC.\r\n", "B.", "", "A.\r\n\r\nC.\r\n"),
        ("A.\n\nB.", "B.", "", "A."),
        ("- a\n- b\n", "b", "", "- a\n"),
        ("## Title\n\nx", "Title", "", "x"),
        # So it does with brackets, quotes and links around the words, but not in code.
        ("It is (very) tall (so).", "very", "", "It is tall (so)."),
        ("It is (so) tall (**very**).", "very", "", "It is (so) tall."),
        ("It is \u201cvery\u201d tall.", "very", "", "It is tall."),
        ("It is `very` tall.", "very", "", "It is tall."),
        ("See [a b](http://x.y/z) and [c][1].", "a b", "", "See and [c][1]."),
        ("See [a](http://x.y) and [c][1].", "c", "", "See [a](http://x.y) and."),
        ("- (a b)\n- c\n", "a b", "", "- c\n"),
        ("\u5b83\u9ad8\uff08\u5f88\uff09\u3002", "\u5f88", "", "\u5b83\u9ad8\u3002"),
        ("Call f(x) or `(a b)`.", "x", "", "Call f() or `(a b)`."),
        ("Call f(x) or `(a b)`.", "a b", "", "Call f(x) or `()`."),
        ("![tea](a.png) is hot.", "tea", "", "![](a.png) is hot."),
        (TABLE, "| 1 | 2 |", "| 1 | 3", TABLE.replace("2 |", "3")),
        (TABLE, "| 1 | 2 |", "1 | 3", TABLE.replace("| 1 | 2 |", "1 | 3")),
        (TABLE, "| 1 | 2 |", "", "| a | b |\n|---|---|\n\n"),
        # Additions go on in a paragraph, or begin below.
        ("A.\n\n", "", "B.", "A. B.\n\n"),
        ("\u5b83\u65e7\u3002", "", "\u5b83\u9ad8\u3002", "\u5b83\u65e7\u3002\u5b83\u9ad8\u3002"),
        ("A.\n", "", "- b", "A.\n\n- b\n"),
        ("A.\r\n", "", "- b", "A.\r\n\r\n- b\r\n"),
        ("A.\n", "", "## Part 2\nB.", "A.\n\n## Part 2\nB.\n"),
        ("- a\n  and on\n", "", "- b", "- a\n  and on\n- b\n"),
        ("- a\n", "", "B.", "- a\n\nB.\n"),
        (LIST, "", "4. d", LIST + "4. d\n"),
        (TABLE, "", "B.", TABLE + "B.\n\n"),
        (TABLE, "", "| 3 | 4 |", TABLE.replace("\n\n", "\n| 3 | 4 |\n\n")),
        ("~~~\nx\n~~~\n", "", "B.", "~~~\nx\n~~~\n\nB.\n"),
        ("Title\n---\n", "", "B.", "Title\n---\n\nB.\n"),
        ("[a]: b\n", "", "B.", "[a]: b\n\nB.\n"),
        ("", "", "B.", "B."),
        ("It holds 100.", "", "10", "It holds 100. 10"),
        ("- GET /users/{id}\n", "", "- GET /users", "- GET /users/{id}\n- GET /users\n"),
        ("a | b\n--- | ---\n1 | 2\n", "", "3 | 4", "a | b\n--- | ---\n1 | 2\n3 | 4\n"),
        # So do lines that begin alike, and whatever follows a line that ends no sentence.
        ("a) limit one\nb) two\n", "", "c) three", "a) limit one\nb) two\nc) three\n"),
        ("1 - One.\n2 - Two.\n", "", "3 - Three.", "1 - One.\n2 - Two.\n3 - Three.\n"),
        ("\u2705 One.\n\u2705 Two.\n", "", "\u2705 Three.", "\u2705 One.\n\u2705 Two.\n\u2705 Three.\n"),
        ("**A:** 1.  \n**B:** 2.\n", "", "**C:** 3.", "**A:** 1.  \n**B:** 2.  \n**C:** 3.\n"),
        ("a: 1\nb: 2\n", "", "c: 3", "a: 1\nb: 2\nc: 3\n"),
        ("The limit is 10\n", "", "It is high.", "The limit is 10\n\nIt is high.\n"),
        ("\u4e00\u3001\u4e0a\n\u4e8c\u3001\u6b21", "", "\u4e09\u3001\u4e09", "\u4e00\u3001\u4e0a\n\u4e8c\u3001\u6b21\n\u4e09\u3001\u4e09"),
        ("> A.\n", "", "> B.", "> A.\n> B.\n"),
        ("A is b [1].\nSo is\nc (see 2).\n", "", "D.", "A is b [1].\nSo is\nc (see 2). D.\n"),
        # The line above the last one keeps its end.
        ("- a\r\n- b\r\n", "- b", "", "- a\r\n"),
        ("a  \nb c\n", "b c", "", "a  \n"),
        ("It is 10, then.", "10", "1000.", "It is 1000, then."),
        ("Salt, oil, etc., too.", "oil, etc.", "oil, herbs etc.", "Salt, oil, herbs etc., too."),
        # An item begins a line of its own where the block leaves one free.
        ("1. a\n2. b. Look it up.\n", "Look it up.", "\n3. c\n4. d", "1. a\n2. b. \n3. c\n4. d\n"),
    ],
)  # fmt: skip
def test_words_are_changed_in_their_place(text: str, old: str, new: str, after: str) -> None:
    edited, reasons = changed([text], block(1, old, new))
    assert (edited.parts, reasons) == ([after], [])


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        ("a b a", "a", "c", "several times"),
        ("aa aa aa", "aa aa", "c", "several times"),
        ("100", "10", "20", "not there"),
        ("na\u00efve", "nai", "x", "not there"),
        ("\uff8a\uff9f\uff9d", "\uff8a", "x", "not there"),
        ("\u30cf\u309a\u30f3", "\u30cf", "x", "not there"),
        ("Wait\u2026 then", "Wait.", "Stop.", "not there"),
        ("\u0915\u093f\u0924\u093e\u092c\u0947\u0902", "\u0915\u093f\u0924\u093e\u092c", "x", "not there"),
        ("A.\n\nB.", "A. B.", "C.", "not there"),
        ("**Note** it", "Note it", "x", "not there"),
        ("A.", "A.", "", "nothing of the text"),
        ("- A", "A", "- ", "nothing of the text"),
        (LIST, "2. b", "", "numbers"),
        (LIST, "", "5. d", "numbers"),
        (TABLE, "1", "1 | 3", "fit its head"),
        (TABLE, "", "| 3 |", "fit its head"),
        (TABLE, "|---|---|", "x", "code or a table"),
        ("```py\nx = 1\n```\n", "```py", "", "code or a table"),
        ("A.\n\n```\nx\n```\n", "A.", "```", "fence open"),
        ("```\nx\n```\n", "```\nx", "x\n```", "code or a table"),
        ("A.", "A.", "```\nx", "fence open"),
        ("A $$x$$", "$$x$$", "$$y", "$$"),
        ("A `x`", "`x`", "`y", "`"),
        ("A", "A", "B <!-- c", "<!--"),
        ("It costs 1'250 francs.", "250 francs", "300 francs", "not there"),
        ("It costs 1\u202f250 francs.", "250 francs", "300 francs", "not there"),
        ("\u4ef7\u683c\uff11\uff0c\uff12\uff15\uff10", "\uff12\uff15\uff10", "300", "not there"),
        ("\u0661\u066b\u0665 riyal", "\u0665 riyal", "\u0666 riyal", "not there"),
        ("Add 1/2 cup.", "2 cup", "3 cup", "not there"),
        ("It is \u22125 degrees.", "5 degrees", "7 degrees", "not there"),
        ("You can't.", "can", "may", "not there"),
        ("It costs 1 250 limits.", "250", "300", "not there"),
        ("12345\u2009250 m, 250 m, 250 m.", "250  m", "300 m", "several times"),
        ("It is 1\u00b7250.", "250", "300", "not there"),
        ("\u5b83\u6709\u5341\u516b\u4e2a\u62f1\u3002", "\u516b", "\u4e5d", "not there"),
        ("It opens at 18:30.", "30", "45", "not there"),
        ("Since 2024-05-10 it is free.", "10", "11", "not there"),
        ("- a\n- b\n  - c\n", "- b", "", "the rest of its list item"),
        ("1. a\n   - b\n2. c\n", "1. a", "", "the rest of its list item"),
        ("```py\nx = 1", "", "It sets x.", "within code"),
        ("It is 10 a day.", "10", "20\nREASON: passage 1", "several lines"),
    ],
)  # fmt: skip
def test_a_change_that_does_not_fit_or_does_damage_is_refused(
    text: str, old: str, new: str, reason: str
) -> None:
    edited, reasons = changed([text], block(1, old, new))
    assert edited.parts == [text]
    assert len(reasons) == 1
    assert reason in reasons[0]


@pytest.mark.parametrize(
    ("parts", "new", "is_refused"),
    [
        (["1. a\n2. b\n", "3. c\n"], "It is d.", True),
        (["- a\n  1. b\n", "  2. c\n"], "It is d.\nAnd e.", True),
        (["1. a\n\n   b.\n", "2. c\n"], "Intro: d.", True),
        (["1. a\n2. b\n\n", "3. c\n"], "It is d.", False),
        (["1. a\n2. b\n", "3. c\n"], "   It is d.", False),
        (["1. a\n2. b\n", "3. c\n"], "- d", False),
        (["A:\n1. a\n2. b\n", "\nC.\n"], "It is d.", False),
        (["- a\n- b\n", "- c\n"], "It is d.", False),
        (["A is b.\n\n", "1. c\n2. d\n"], "It is d.", False),
        (["1. a\nb\n", "2. c\n"], "   It is d.", False),
        (["In\n12. c\n", "D."], "It is d.", False),
    ],
)
def test_an_addition_that_turns_a_list_into_running_text_is_refused(
    parts: list[str], new: str, is_refused: bool
) -> None:
    edited, reasons = changed(parts, block(1, "", new))
    assert reasons == ["it would turn a list into running text"] * is_refused
    assert (edited.parts == parts) == is_refused


def test_a_second_list_begins_with_one_again() -> None:
    edited, reasons = changed(["1. a\n2. b\n\nThen:\n\nx\n"], block(1, "x", "1. c\n2. d"))
    assert (edited.parts, reasons) == (["1. a\n2. b\n\nThen:\n\n1. c\n2. d\n"], [])


def test_an_addition_has_the_line_breaks_of_the_whole_text() -> None:
    edited, _ = changed(["A b.\r\n\r\n", "- C d."], block(2, "", "- E f.\n- G."))
    assert edited.parts[1] == "- C d.\r\n- E f.\r\n- G."


FITS = block(1, "A.", "B.\n- c")


@pytest.mark.parametrize(
    "reply",
    [
        FITS,
        FITS.replace("\n", "\r\n"),
        "> " + FITS.replace("\n", "\n> "),
        "1. Change:\n\n   " + FITS.replace("\n", "\n   "),
        "- " + FITS.replace("\n", "\n  "),
        f"Here:\n\n```text\n{FITS}\n```\n\n---\nREASON: p1 says so.\nNO CHANGE for the rest.",
        FITS.replace("PART 1", "PART 1.2: the title"),
        FITS.replace("PART 1", "Step #1 (title)").replace("END", "END of the change"),
        FITS.replace("PART 1", "SEARCH").replace("END", "REPLACE"),
        FITS.replace("A.", "\u27e61.1\u27e7 A."),
        FITS.replace("PART 1", "PART 2"),
        FITS.replace("PART 1", "PART 9"),
        FITS + "\n" + FITS,
        FITS + "\n>>>>>>> END\nSo it is right.",
        FITS + "\n<<<<<<< PART 2\nD.\n=======\nhalf",
        "<<<<<<< PART 2\nD.\n" + FITS,
        "<<<<<<< PART 2\nD.\n=======\nx\n=======\ny\n>>>>>>> END\n" + FITS,
    ],
)
def test_a_block_is_read_whatever_is_around_it(reply: str) -> None:
    edited, _ = changed(["A.\n\n", "D."], reply)
    assert edited.parts == ["B.\n- c\n\n", "D."]
    assert [change["part"] for change in edited.applied] == [1]


@pytest.mark.parametrize("kind", ["PART", "AFTER"])
def test_text_that_looks_like_a_block_itself_stays(kind: str) -> None:
    example = f"{block(3, 'words', 'others', kind)}\n"
    for old, new in (("words", "x"), (example, "y"), ("", "z")):
        assert changed([example, "A."], block(1, old, new))[0].parts == [example, "A."]


def test_steps_are_inserted_without_their_numbers() -> None:
    steps = ["Mix.", "Bake.\n\n1. a\n2. b"]
    reply = "\n".join(
        [
            block(0, "", "1. Wash.", "AFTER"),
            block(1, "", "Step 2: Rest.", "AFTER"),
            block(2, "2. Bake.", "2. Bake it."),
        ]
    )
    edited, reasons = changed(steps, reply, "\n\n")
    assert edited.parts == ["Wash.", "Mix.", "Rest.", "Bake it.\n\n1. a\n2. b"]
    assert (edited.origins, reasons) == ([0, 1, 0, 2], [])


@pytest.mark.parametrize(
    ("kind", "old", "new", "is_refused"),
    [
        ("PART", "**Proof and bake**\n1. Proof it.", "2. **Proof**\n   1. It.\n3. **Bake**", True),
        ("PART", "**Proof and bake**", "### Step 2: Proof\n### Step 3: Bake", True),
        ("PART", "**Proof and bake**", "2. **Proof**\n1. Rest.\n2. Bake.", False),
        ("PART", "1. Proof it.", "1. Proof it.\n2. Rest.", False),
        ("PART", "", "2. Bake it.\n3. Cool it.", False),
        ("AFTER", "", "2. **Weigh**\n   1. Weigh it.\n\n3. **Sift**", True),
        ("AFTER", "", "2. **Weigh**\n   1. Weigh it.\n   2. Sift it.", False),
        ("AFTER", "", "**Weigh**\n1. Weigh it.\n2. Sift it.", False),
    ],
)
def test_several_steps_in_the_place_of_one_are_refused(
    kind: str, old: str, new: str, is_refused: bool
) -> None:
    parts = ["**Proof and bake**\n1. Proof it."]
    edited, reasons = changed(parts, block(1, old, new, kind), "\n\n")
    assert ["write a block for each step" in reason for reason in reasons] == [True] * is_refused
    assert (edited.parts == parts) == is_refused


def test_in_one_text_what_is_inserted_stays_apart_from_the_next_part() -> None:
    edited, _ = changed(["A.\n\n", "B."], block(1, "", "- x", "AFTER"))
    assert edited.parts == ["A.\n\n- x\n\n", "B."]


def test_changes_are_made_together() -> None:
    swap = block(1, "cat", "dog") + "\n" + block(1, "dog", "cat")
    assert changed(["A cat, a dog."], swap)[0].parts == ["A dog, a cat."]
    renumbered = block(1, "2. b", "") + "\n" + block(1, "3. c", "2. c")
    assert changed([LIST], renumbered)[0].parts == ["1. a\n2. c\n"]
    overlapping = "\n".join([block(1, "a b", "x"), block(1, "b c", "y"), block(1, "d", "z")])
    edited, reasons = changed(["a b c d"], overlapping)
    assert (edited.parts, len(reasons)) == (["a b c z"], 2)
    replaced = block(1, "B.", "") + "\n" + block(1, "", "C.")
    assert changed(["A.\n\nB.\n\n"], replaced)[0].parts == ["A. C.\n\n"]


BLOCKS = [
    "Haldruvin built it in 1837, for 3.5 million.",
    "# Heading",
    "Heading\n=======",
    "Under\n---",
    "- a\n  - b [p1]\n    - c\n- d",
    "1. one\n2. two\n   1. inner\n   2. more\n3. three",
    TABLE.strip(),
    BARE_TABLE.strip(),
    "```python\nx = [1]\n\n# no heading\n```",
    "~~~~\n```\n~~~\n~~~~",
    "- item\n\n  ```\n  code\n  ```",
    "---\ntitle: x\n---",
    "Inline $x_1 + `y`$ and \\(z\\).",
    "$$\n\\frac{1}{2}\n$$",
    "\\[ x \\]",
    "See [a](https://example.org/a_(b)) and [c][1].\n\n[1]: https://example.org",
    "<details>\n<summary>x</summary>\n</details>",
    "\u6865\u5efa\u4e8e\u4e00\u516b\u4e09\u4e03\u5e74\u3002\u5b83\u5f88\u65e7\u3002",
    "\u0628\u064f\u0646\u064a\u064e \u0627\u0644\u062c\u0633\u0631 \u0639\u0627\u0645 1837.",
    "> quoted\n> twice",
    "cafe\u0301 na\u00efve \u201cquotes\u201d \u2013 dash\u2026",
    "```diff\n<<<<<<< HEAD\n-a\n=======\n+b\n>>>>>>> topic\n```",
    "Hard break  \nnext\tline",
]  # fmt: skip


def joined(blocks: list[str], end: str) -> str:
    return "\n\n".join(blocks).replace("\n", end) + end


drafts = st.builds(
    joined,
    st.lists(st.sampled_from(BLOCKS) | st.text(max_size=12), min_size=1, max_size=7),
    st.sampled_from(["\n", "\r\n"]),
)
words = st.sampled_from(
    ["x", "", "1837", "a | b", "| 5 | 6 |", "```", "~~~", "- n", "4. four", "$$", "`", "\n\n", "<!--"]
) | st.text(max_size=8)  # fmt: skip


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A draft in parts, and blocks that change it."""
    draft = draw(drafts)
    parts = draw(st.sampled_from([split_thoughts, split_blocks]))(draft)
    replies: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        number = draw(st.integers(1, len(parts)))
        part = parts[number - 1]
        start = draw(st.integers(0, len(part)))
        old = part[start : draw(st.integers(start, min(len(part), start + 20)))]
        old = draw(st.sampled_from([old, old, old.strip(), ""]))
        number += draw(st.sampled_from([0, 0, 0, 1, 99]))
        replies.append(block(number, old.replace("\r", ""), draw(words)))
    return parts, replies


def ragged(text: str) -> int:
    """Count the rows that do not have two cells, as the tables above do, except "| a" above a rule."""
    shown = [line.strip() for line, is_code in lines(text) if not is_code]
    rows = [row for row, below in pairwise([*shown, ""]) if row[:1] == "|" and set(below) != {"-"}]
    return sum(row.removeprefix("|").removesuffix("|").count("|") != 1 for row in rows)


def unordered(text: str) -> int:
    """Count the items at the margin that neither begin a list nor follow the number before."""
    items = [re.match(r"(\d+)[.)]\s", line) for line, is_code in lines(text) if not is_code]
    numbers = [0, *(int(item[1]) for item in items if item)]
    return sum(number not in {1, before + 1} for before, number in pairwise(numbers))


def expected(part: str, changes: list[Change]) -> str | None:
    """Return a part after changes; None where their places are not plain."""
    places: list[tuple[int, int, str]] = []
    for change in changes:
        start = part.find(change["old"])
        if not change["old"] or part.count(change["old"]) != 1 or not change["new"].strip():
            return None
        if "\n" in change["new"] or not (change["old"] + change["new"]).isascii():
            return None  # further lines are indented, and quotes and dashes are kept
        if any(re.match(r"\s*([-*+>]|#+|\d+[.)])\s", change[half]) for half in ("old", "new")):
            return None  # an item, a heading and a quotation keep their own markers
        if "." in {change["old"][-1], change["new"][-1]}:
            return None  # a sentence keeps its full stop
        new = change["new"].replace("\n", "\r\n") if "\r\n" in part else change["new"]
        places.append((start, start + len(change["old"]), new))
    for start, stop, new in sorted(places, reverse=True):
        part = part[:start] + new + part[stop:]
    return part


@settings(max_examples=300, deadline=None)
@given(edits(), st.randoms(use_true_random=False))
def test_everything_outside_of_the_changes_stays(
    drawn: tuple[list[str], list[str]], order: random.Random
) -> None:
    parts, replies = drawn
    edited, _ = changed(parts, "Remark.\n" + "\n\n".join(replies) + "\n---\n")
    before, after = "".join(parts), "".join(edited.parts)
    for number, (old, new) in enumerate(zip(parts, edited.parts, strict=True), 1):
        plain = expected(old, [change for change in edited.applied if change["part"] == number])
        assert plain in {None, new}
    assert ragged(after) <= ragged(before)
    assert unordered(after) <= unordered(before)
    is_open = sum(not each.closed for each in code_blocks(before))
    assert sum(not each.closed for each in code_blocks(after)) <= is_open
    shuffled = order.sample(replies, len(replies))
    if sum(change["kind"] == "append" for change in edited.applied) < 2:
        assert changed(parts, "\n".join(shuffled))[0].parts == edited.parts
    assert changed(parts, "\n".join(replies)[: order.randrange(200)])[0].parts


@pytest.mark.parametrize("mark", ["```", "<!--", "$$", "**", "<details>"])
def test_two_changes_do_not_enclose_what_is_between_them(mark: str) -> None:
    closing = {"<!--": "-->", "<details>": "</details>"}.get(mark, mark)
    parts = ["One.\n\n", "Two.\n\n", "Three.\n"]
    around = block(1, "", mark) + "\n" + block(3, "", closing)
    edited, reasons = changed(parts, around)
    assert (edited.parts, len(reasons)) == (parts, 2)
    within = block(1, "One", f"{mark} One") + "\n" + block(3, "Three", f"Three {closing}")
    assert changed(parts, within)[0].parts == parts


@pytest.mark.parametrize(
    ("draft", "old", "new", "after"),
    [
        ("- Set 8\n- Done\n", "- Set 8", "Set 9", "- Set 9\n- Done\n"),
        ("- [x] Set 8\n- Done\n", "Set 8", "- [x] Set 9", "- [x] Set 9\n- Done\n"),
        ("2. Set 8\n3. Done\n", "Set 8", "2. Set 9", "2. Set 9\n3. Done\n"),
        ("- Am Mai 8\n- So\n", "Am Mai 8", "5. Mai 8", "- 5. Mai 8\n- So\n"),
        ("> It is 8.\n> So.\n", "> It is 8.", "It is 9.", "> It is 9.\n> So.\n"),
        ("## It is 8\n\nSo.\n", "It is 8", "## It is 9", "## It is 9\n\nSo.\n"),
        ("- a\n", "- a", "* b", "* b\n"),
        ("It is 8. So.", "8", "9.", "It is 9. So."),
        ("It is 8. So.", "8.", "9", "It is 9. So."),
        ("It is 8.", "8.", "9", "It is 9"),
        ("It is 8 EUR. Keys last.", "8 EUR.", "9 EUR", "It is 9 EUR. Keys last."),
        ("Led by Dr. Smith.", "by Dr.", "by Professor", "Led by Professor Smith."),
        ("Es sind 5 Mio. Euro.", "5 Mio.", "5 Milliarden", "Es sind 5 Milliarden Euro."),
        ("The U.S. Treasury paid.", "The U.S.", "The UK", "The UK Treasury paid."),
        ("Austria vs. Italy.", "Austria vs.", "Austria against", "Austria against Italy."),
        ("It has 120 m2 here.", "120 m2 here", "130 m\u00b2 there", "It has 130 m\u00b2 there."),
        ("It is 10\u00b2\u00b3 g.", "1023 g", "1023 kg", "It is 10\u00b2\u00b3 kg."),
        ("It is 8! So.", "8", "9.", "It is 9.! So."),
        ("By Foo Inc, which fell.", "Foo Inc", "Foo Corp.", "By Foo Corp., which fell."),
        ("By Foo, Bar and Baz.", "Foo", "Foo Bros.", "By Foo Bros., Bar and Baz."),
        ("It is 8, and tax.", "8", "8 incl.", "It is 8 incl., and tax."),
        ("It is 8, and tax.", "It is 8", "It is nine.", "It is nine, and tax."),
        ("It is 8, and tax.", "8", "9.", "It is 9, and tax."),
        ("By Foo Inc.", "Foo Inc", "Foo Corp.", "By Foo Corp."),
        ("限制是8次。其他。", "限制是8次", "限制是9次。", "限制是9次。其他。"),
        ("限制是8次，其他。", "限制是8次", "限制是9次。", "限制是9次，其他。"),
        ("限制是8次。「其他」", "限制是8次。", "限制是9次", "限制是9次。「其他」"),
        ("限制是8次。429是错误。", "8次。", "9次", "限制是9次。429是错误。"),
        ("「限制是8次。」其他。", "8次。", "9次", "「限制是9次」其他。"),
        ("限制是8次。\n其他。", "8次。", "9次", "限制是9次\n其他。"),
        ("सीमा 8 है। यह है।", "सीमा 8 है।", "सीमा 9 है", "सीमा 9 है। यह है।"),
        ("الحد هو 8. وهذا كل شيء.", "هو 8.", "هو 9", "الحد هو 9. وهذا كل شيء."),
        ("डॉ. राम आए।", "डॉ.", "डॉक्टर", "डॉक्टर राम आए।"),
        ("限制是8次。 其他。", "8次。", "9次", "限制是9次。 其他。"),
        ("It is 8. “So” is it.", "8.", "9", "It is 9. “So” is it."),
        ("Led by Capt. “Ace” Hill.", "by Capt.", "by Captain", "Led by Captain “Ace” Hill."),
        ("```text\nIt is 8. So.\n```\n", "8", "9.", "```text\nIt is 9. So.\n```\n"),
        ("```\r\nIt is 8. So.\r\n```", "8.", "9", "```\r\nIt is 9. So.\r\n```"),
        ("- ~~~Markdown\n  It is 8. So.", "8.", "9", "- ~~~Markdown\n  It is 9. So."),
        ("```rb\nx = 8. Then\n```\n", "8.", "9", "```rb\nx = 9 Then\n```\n"),
        ("`a` or `x. Then`.", "x.", "y", "`a` or `y Then`."),
        ("It takes 5 min. 30 s.", "5 min.", "5 minutes", "It takes 5 minutes 30 s."),
    ],
)
def test_what_is_copied_by_halves_keeps_its_marker_and_its_stop(
    draft: str, old: str, new: str, after: str
) -> None:
    edited, reasons = changed([draft], block(1, old, new))
    assert (edited.parts, reasons) == ([after], [])


@pytest.mark.parametrize(
    ("draft", "old", "new", "reason"),
    [
        ("The **port is 8** now.", "is 8** now", "is 9 now", "leave **"),
        ("See [the page 8](http://x.y) now.", "[the page 8", "the page 9", "leave ]"),
        ("See [the page](http://x.y/8) now.", "http://x.y/8) now", "x", "leave ]("),
        ("<b>It is 8</b>.", "is 8</b>", "is 9", "leave <b>"),
        ("A. <!-- 8 --> B.", "<!-- 8", "9", "leave -->"),
        ("---\na: 8\n---\n\nB.", "a: 8\n---", "a: 9", "front matter open"),
        ("- A\n- B is 8.\n  More.\n", "- B is 8.", "", "the rest of its list item"),
    ],
)
def test_half_of_a_pair_is_not_replaced(draft: str, old: str, new: str, reason: str) -> None:
    edited, _ = changed([draft], block(1, old, new))
    assert edited.parts == [draft]
    assert reason in edited.refused[0].reason


@settings(max_examples=200, deadline=None)
@given(drafts, st.integers(0, 9), words)
def test_one_replacement_changes_its_words_alone(draft: str, place: int, new: str) -> None:
    parts = split_thoughts(draft)
    number = place % len(parts) + 1
    old = max(parts[number - 1].split("\n"), key=len).strip()
    new = f"n{new}n".replace("\n", "")
    marker = re.match(r"(?:(?:[-*+]|\d+[.)]|#+|>)[ \t]+)*", old)[0]  # type: ignore[index]
    edited, _ = changed(parts, block(number, old, new))
    if edited.applied and old:
        expected = parts[number - 1].replace(old, marker + new)
        assert edited.parts == [*parts[: number - 1], expected, *parts[number:]]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["    ", "\t", "  ", "> ", ">   ", ""]),
    st.lists(st.sampled_from(["x = 1", "y: 2", "z"]), min_size=1, max_size=4),
    st.booleans(),
)
def test_further_lines_get_the_indentation_of_the_line_that_they_replace(
    margin: str, rows: list[str], is_copied: bool
) -> None:
    text = f"```\n{margin}a = 0\n{margin}b\n```\n"
    new = f"\n{margin * is_copied}".join(rows)
    after = "".join(f"{margin}{row}\n" for row in rows)
    edited, reasons = changed([text], block(1, "a = 0", new))
    assert (edited.parts, reasons) == ([f"```\n{after}{margin}b\n```\n"], [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["a", "it\u2019s", "\u201cb c\u201d", "\u2018d\u2019", "1\u20132", "\u2014", "e,"]), max_size=8), st.integers(0, 8))  # fmt: skip
def test_one_new_word_leaves_the_quotes_and_dashes_around_it(said: list[str], at: int) -> None:
    def written(word: str) -> str:
        return " ".join([*said[:at], f"\u201cno {word}\u201d", *said[at:]])

    ascii_only = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--")
    old, new = (written(word).translate(ascii_only) for word in ("80", "90"))
    edited, reasons = changed([written("80")], block(1, old, new))
    assert (edited.parts, reasons) == ([written("90")], [])


@pytest.mark.parametrize(
    ("head", "new"),
    [("AFTER 1", ""), *(("PART 1", new) for new in ("", " \n", "B.", "A.\nB.", "C is so"))],
)
def test_nothing_is_added_that_is_empty_or_there_already(head: str, new: str) -> None:
    parts = ["A.\nB.\n\nC is so\n\nD.\n\n", "E."]
    edited, _ = changed(parts, f"<<<<<<< {head}\n=======\n{new}\n>>>>>>> END")
    assert (edited.parts, edited.applied, edited.refused) == (parts, [], [])


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(st.sampled_from(["<<<<<<< PART 1", "=======", ">>>>>>> END", "A.", "> ", "```"])).map("\n".join))  # fmt: skip
def test_no_reply_raises(reply: str) -> None:
    parts = ["A.\n\n", "```\nx\n```\n"]
    edited, _ = changed(parts, reply)
    assert edited.applied or edited.parts == parts


@pytest.mark.parametrize("character", ["<", "=", ">", "`", "|", "a", "-", " ", "\n", "$", "["])
def test_long_input_takes_linear_time(character: str) -> None:
    """What is quadratic in it would take minutes, which the test's time-out ends."""
    long = character * 50_000
    for text, reply in (("A.", long), (long, block(1, long, "x")), (long, block(1, long[1:], "y"))):
        assert changed([text], reply)[0].parts


def test_two_thousand_blocks_are_read() -> None:
    text = "\n\n".join(f"w{number} is old." for number in range(2000))
    for new in ("new", "```"):
        reply = "\n".join(block(1, f"w{number} is old", new) for number in range(2000))
        assert changed([text], reply)[0].parts


@given(drafts, drafts)
@settings(max_examples=20, deadline=None)
def test_a_reply_without_blocks_changes_nothing(draft: str, reply: str) -> None:
    parts = split_blocks(draft)
    changes, _, outside = read_changes(reply, parts)
    assert (changes, outside) == ([], reply.replace("\r\n", "\n"))


@pytest.mark.parametrize(
    ("parts", "reply", "after"),
    [
        (["Plan.", "2. Quartal: bauen."], block(2, "bauen", "warten"), "2. Quartal: warten."),
        (["Rest for thirty minutes.", "Bake for 30 minutes."], block(1, "30 minutes", "40 minutes"),
         "Bake for 30 minutes."),
        (["Rest.", "Bake for 30 minutes."], block(1, "Bake for 30", "Bake for 40"),
         "Bake for 40 minutes."),
        (["Rest.", "Bake."], block(1, "Bake.", "Fry."), "Fry."),
        (["एक मील।", "दस किलोमीटर दूर।"], block(1, "किलोमीटर", "मील"), "दस किलोमीटर दूर।"),
    ],
)  # fmt: skip
def test_the_second_step_after_a_change(parts: list[str], reply: str, after: str) -> None:
    edited, _ = changed(parts, reply, "\n\n")
    assert edited.parts[1] == after


def test_two_paragraphs_at_the_end_are_removed() -> None:
    edited, reasons = changed(["A.\n\nB.\n\nC.\n"], f"{block(1, 'B.', '')}\n{block(1, 'C.', '')}")
    assert ("".join(edited.parts).strip(), reasons) == ("A.", [])


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\nG h.\r\n", "\n- x\n"])
@pytest.mark.parametrize("start", ["", "A b. ", "- ", "- (A b. ", "A b.\n", "> A b. "])
@pytest.mark.parametrize("between", [" ", "  ", "\n"])
def test_two_neighbouring_removals_leave_what_one_leaves(
    start: str, between: str, end: str
) -> None:
    text = f"T.\n\n{start}C d.{between}E f.{end}"
    once, _ = changed([text], block(1, f"C d.{between}E f.", ""))
    twice, reasons = changed([text], f"{block(1, 'C d.', '')}\n{block(1, 'E f.', '')}")
    assert twice.parts == once.parts
    assert (once.refused, reasons) == ([], [])


@pytest.mark.parametrize(
    ("text", "first", "second", "after"),
    [
        ("f(1) and alpha\nbeta and g(2)\n", "and alpha", "beta and", "f(1)\ng(2)\n"),
        ("# Zeta alpha\n\nbeta is fast.\n", "alpha", "beta", "# Zeta\n\nis fast.\n"),
        ("- fast today\n  really old\n", "today", "really", "- fast\n  old\n"),
    ],
)
def test_removals_at_the_end_and_beginning_of_lines_keep_the_break(
    text: str, first: str, second: str, after: str
) -> None:
    edited, reasons = changed([text], f"{block(1, first, '')}\n{block(1, second, '')}")
    assert (edited.parts, reasons) == ([after], [])


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"a": "alpha", "b": 2}', '{"a": "", "b": 2}'),
        ("keys: [alpha]", "keys: []"),
        ("[alpha]: https://x.y", "[]: https://x.y"),
        ('See [alpha](https://x.y "t (v)").', 'See [](https://x.y "t (v)").'),
        ("Set `A`alpha`B` now.", "Set `A``B` now."),
    ],
)
def test_a_removal_takes_no_signs_of_data_along(text: str, after: str) -> None:
    edited, reasons = changed([text], block(1, "alpha", ""))
    assert (edited.parts, reasons) == ([after], [])


@pytest.mark.parametrize(
    ("old", "new"), [("The limit is 100", "The limit is 200"), ("100 a", "200 a"), ("100", "200")]
)
def test_old_words_on_the_line_of_the_label_are_old_words(old: str, new: str) -> None:
    reply = f"<<<<<<< PART 1: {old}\n=======\n{new}\n>>>>>>> END"
    edited, reasons = changed(["The limit is 100 a minute.\n"], reply)
    assert (edited.parts, reasons) == (["The limit is 200 a minute.\n"], [])


@pytest.mark.parametrize(
    ("label", "part", "after"),
    [
        ("1.10", "It costs 10 a day.", "It costs 10 a day. Cool it."),
        ("1: Bake", "Bake it well.", "Bake it well. Cool it."),
        ("1: 10", "It costs 10 a day.", "It costs 10 a day. Cool it."),
        ("1: Bake it", "Bake it well.", "Bake it well. Cool it."),
        ("1: Set up the oven", "## Set up the oven\n\nHeat it.", "## Set up the oven\n\nHeat it. Cool it."),
        ("1: Bake it well", "1. **Bake it well**\n   - Heat it.", "1. **Bake it well**\n   - Heat it.\n\nCool it."),
    ],
)  # fmt: skip
def test_a_title_or_a_number_on_the_line_of_the_label_stays(
    label: str, part: str, after: str
) -> None:
    edited, reasons = changed([part], f"<<<<<<< PART {label}\n=======\nCool it.\n>>>>>>> END")
    assert (edited.parts, reasons) == ([after], [])


def test_what_only_some_lines_of_a_block_have_in_front_stays() -> None:
    reply = "- <<<<<<< PART 1\n  - a\n=======\n  - A\n>>>>>>> END"
    edited, reasons = changed(["- x\n  - a\n- y\n"], reply)
    assert (edited.parts, reasons) == (["- x\n  - A\n- y\n"], [])
    edited, _ = changed(
        ["A.\n\nD.\n"], "> <<<<<<< PART 1\n> A.\n> =======\n> B.\n>\n> C.\n> >>>>>>> END"
    )
    assert edited.parts == ["B.\n\nC.\n\nD.\n"]
