"""The records of a file: none is lost, cut or changed without a word."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepcraft.records import MAX_RECORD, Record, records

TEA, POT = '{"title": "Tea"}', '{"title": "Pot"}'


def read(folder: Path, name: str, content: str | bytes) -> list[Record]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(records(path))


def shown(found: list[Record]) -> list[tuple[int, Any]]:
    """Return the line of each record, with its values, its items, or why it cannot be read."""
    return [(each.line, each.values or each.items or each.reason) for each in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"[{TEA}][{POT}]", [(1, {"title": "Tea"}), (1, {"title": "Pot"})]),
        (f"[\n  {TEA}\n]\n[\n  {POT}\n]\n", [(2, {"title": "Tea"}), (5, {"title": "Pot"})]),
        (f"[][{POT}]\n\n", [(1, {"title": "Pot"})]),
        (f"[[1],\n[{TEA}]\n]\n", [(1, [1]), (2, [{"title": "Tea"}])]),
        (f"[{TEA}]\n\n[{POT}]\n", [(1, [{"title": "Tea"}]), (3, [{"title": "Pot"}])]),
        (f"[{TEA}]\r\n[{POT}]\r\n", [(1, [{"title": "Tea"}]), (2, [{"title": "Pot"}])]),
    ],
)
def test_every_array_in_a_file_is_read(
    tmp_path: Path, text: str, found: list[tuple[int, Any]]
) -> None:
    assert shown(read(tmp_path, "a.json", text)) == found


@pytest.mark.parametrize("rest", ["done", "]", TEA])
def test_what_follows_an_array_is_named(tmp_path: Path, rest: str) -> None:
    tea, other = read(tmp_path, "a.json", f"[{TEA}]\n{rest}")
    assert tea.values == {"title": "Tea"}
    assert other.reason.endswith("and the rest of the file was not read")


def test_a_large_object_is_one_record(tmp_path: Path) -> None:
    value = {"recipes": [{"title": f"Tea {n}", "text": "Hot. " * 90} for n in range(9_000)]}
    (record,) = read(tmp_path, "a.json", json.dumps(value, indent=1))
    assert record.values == value
    (record,) = read(tmp_path, "b.json", f'{{\n"a": {{}},\n{TEA[1:-1]},\n}}')
    assert (record.line, record.values) == (1, None)
    assert record.reason.startswith("it is not JSON: ")


@pytest.mark.parametrize(
    "broken", ["broken", '{"title": "Ki', '{"title": "Kit"', "{]", '{"a": 1}}']
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_broken_line_of_a_json_file_costs_only_itself(
    tmp_path: Path, broken: str, end: str
) -> None:
    for lines in ((broken, TEA, POT), (TEA, broken, POT)):
        found = read(tmp_path, "a.json", end.join(lines))
        assert [each.values for each in found if each.values] == [
            {"title": "Tea"},
            {"title": "Pot"},
        ]
        assert [each.line for each in found if not each.values] == [1 + lines.index(broken)]


SALES = "Item,Code,Price\nTea,A1,25\n"


@pytest.mark.parametrize(
    ("text", "above", "values"),
    [
        (f"Sales 2024,,\n{SALES}", [1], {"Item": "Tea", "Code": "A1", "Price": "25"}),
        (
            f"Sales 2024,,\n,,\nof May,,\n{SALES}",
            [1, 3],
            {"Item": "Tea", "Code": "A1", "Price": "25"},
        ),
        ("One\nTwo\nThree\nItem,Code\nTea,A1\n", [1, 2, 3], {"Item": "Tea", "Code": "A1"}),
        (
            "Of:;A1\nFrom:;May\n\nItem;Code;Price;By\nTea;A1;25;Ana\nPot;A2;9;Bob\n",
            [1, 2],
            {"Item": "Tea", "Code": "A1", "Price": "25", "By": "Ana"},
        ),
        ("a,b\n1,2,3,\n4,5,6,\nc,d\n", [], {"a": "c", "b": "d"}),
        (
            "name,address\nAna,Main St,Paris,France\nBob,Low Rd,Rome,Italy\nEve,Home\n",
            [],
            {"name": "Eve", "address": "Home"},
        ),
        ("Name,Note\nAna,hot,,\nBob,cold,,\nEve,warm\n", [], {"Name": "Eve", "Note": "warm"}),
        (",text\n0,Hot\n", [], {"column 1": "0", "text": "Hot"}),
        ("title,\nTea,\nPot,old\nCup,\n", [], {"title": "Tea", "column 2": ""}),
        ("title\nTea\n", [], {"title": "Tea"}),
    ],
)
def test_a_title_padded_with_empty_cells_is_no_header(
    tmp_path: Path, text: str, above: list[int], values: dict[str, str]
) -> None:
    found = read(tmp_path, "a.csv", text)
    assert next(each.values for each in found if each.values) == values
    titles = [each.line for each in found if each.reason == "it stands above the header"]
    assert titles == above


def test_a_row_in_another_encoding_than_the_mark_says_is_named(tmp_path: Path) -> None:
    text = "\ufefftitle\nGrün\n".encode() + "Früh\n".encode("latin-1")
    found = read(tmp_path, "a.csv", text)
    assert shown(found) == [
        (2, {"title": "Grün"}),
        (3, "it is not UTF-8 (byte 0xfc at character 3)"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("more", [-1, 0, 1, 250_000, 250_001])
def test_only_a_line_that_is_too_long_is_skipped(tmp_path: Path, end: str, more: int) -> None:
    long = '{"title": "%s"}' % ("x" * (MAX_RECORD - 13 + more))
    first, second = read(tmp_path, "a.jsonl", f"{long}{end}{POT}{end}")
    assert (first.values is None) == (more > 0)
    assert (second.line, second.values) == (2, {"title": "Pot"})
    cells = ",".join(["x" * (MAX_RECORD // 2)] * 2)[: MAX_RECORD + more] + "x" * max(0, more - 1)
    first, second = read(tmp_path, "a.csv", f"title,text{end}{cells}{end}Pot,old{end}")
    assert shown([first]) == [(2, "it is longer than 4,000,000 characters")] or more <= 0
    assert (first.values is None) == (more > 0)
    assert (second.line, second.values) == (3, {"title": "Pot", "text": "old"})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Artikel;Preis, netto\nTee;1,50\nEis;2,00\n", {"Artikel": "Tee", "Preis, netto": "1,50"}),
        ("Artikel,Note\nTea,hot; black\nPot,blue\n", {"Artikel": "Tea", "Note": "hot; black"}),
        ("title,tags\nTea,hot|black\n", {"title": "Tea", "tags": "hot|black"}),
    ],
)
def test_a_comma_is_a_decimal_sign_where_semicolons_separate_as_well(
    tmp_path: Path, text: str, values: dict[str, str]
) -> None:
    assert read(tmp_path, "a.csv", text)[0].values == values


def test_the_first_letters_that_are_not_ascii_may_be_late_in_a_table(tmp_path: Path) -> None:
    row = "Tea,This is steeped for two minutes.\n"
    rows = "title,text\n" + row * 30_000 + "Café,Un café crème près de la gare.\n" * 3
    for encoding in ("cp1252", "utf-8"):
        *_, last = read(tmp_path, "a.csv", rows.encode(encoding))
        assert last.values == {"title": "Café", "text": "Un café crème près de la gare."}
    *_, last = read(tmp_path, "a.jsonl", (f"{TEA}\n" * 60_000).encode() + b'{"title": "Caf\xe9"}\n')
    assert last.reason == "it is not UTF-8 (byte 0xe9 at character 15)"
