"""Procedures in text files: every record is read or named with its line, and nothing is lost on the way."""

import csv
import io
import json
import logging
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.memory.files import import_file, read_all, read_procedures, write_jsonl
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure

GOOD = '{"output": "tea", "input": "leaves", "steps": ["Boil.", "Pour."]}'
TEXT = st.text(min_size=1, max_size=20).filter(lambda text: text.strip())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def procedures(draw) -> Procedure:
    fields = {
        "output": draw(TEXT),
        "input": draw(TEXT),
        "steps": draw(st.lists(TEXT, min_size=1, max_size=3)),
        "source": draw(st.text(max_size=8)),
        "metadata": draw(st.dictionaries(st.text(max_size=5), JSON, max_size=2)),
        "id": draw(st.just("") | st.uuids().map(str)),
    }
    try:
        return Procedure(**fields)
    except BadInput:
        return Procedure(output="a", input="b", steps=["c"], metadata=fields["metadata"])


@given(st.lists(procedures(), min_size=1, max_size=5))
def test_a_round_trip_through_jsonl_loses_nothing(given_):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.jsonl"
        assert write_jsonl(given_, path) == len(given_)
        assert read_all(path) == given_


@given(st.lists(procedures(), min_size=1, max_size=4), st.sampled_from(["json", "csv"]))
def test_a_json_array_and_a_csv_file_are_read_alike(given_, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"p.{kind}"
        records = [item.to_dict() for item in given_]
        if kind == "json":
            path.write_text(json.dumps(records, indent=1), encoding="utf-8")
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(records[0]))
                writer.writeheader()
                listed = ("steps", "metadata")
                writer.writerows(
                    {**record, **{name: json.dumps(record[name]) for name in listed}}
                    for record in records
                )
        assert [(item.id, item.steps, item.metadata) for item in read_all(path)] == [
            (item.id, item.steps, item.metadata) for item in given_
        ]


@given(st.binary(max_size=300), st.sampled_from([".jsonl", ".json", ".csv"]))
def test_any_bytes_are_read_or_refused_in_a_sentence(content, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"p{kind}"
        path.write_bytes(content)
        check_any(path)


@given(
    st.lists(
        st.sampled_from([GOOD, "{}", "[]", '"x"', "{", "nul", "", "1", '{"output": 1}']), max_size=6
    ),
    st.sampled_from([".jsonl", ".json"]),
)
def test_any_lines_are_read_or_refused_in_a_sentence(lines, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"p{kind}"
        path.write_text("\n".join(lines))
        check_any(path)


def check_any(path: Path) -> None:
    outcomes = []
    try:
        outcomes.extend(read_procedures(path))
    except BadInput as error:
        refusal = str(error)
    else:
        refusal = ""
    assert outcomes or str(path) in refusal
    assert all(
        isinstance(item, Procedure) or item.where == f"{path}:{line}" for line, item in outcomes
    )


def failures(path: Path) -> list[tuple[int, str]]:
    return [
        (line, outcome.reason)
        for line, outcome in read_procedures(path)
        if isinstance(outcome, Failed)
    ]


def test_three_broken_lines_are_named_and_the_rest_goes_in(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    bread = '{"output": "bread", "input": "flour", "steps": "1. Knead.\\n2. Bake."}'
    lines = [
        GOOD,
        '{"output": "x", "input": "y", "steps": []}',
        "",
        b"\xff\xfe no text".decode("latin-1"),
        bread,
        GOOD[:30],
    ]
    path.write_bytes(b"\n".join(line.encode("latin-1") for line in lines))
    with open_memory(tmp_path / "m.db", embeddings="none") as memory:
        report = import_file(memory, path)
        assert report.added == 2
        assert [failed.where for failed in report.failed] == [
            f"{path}:{line}" for line in (2, 4, 6)
        ]
        assert "at least one step" in report.failed[0].reason
        assert "not UTF-8 (byte 0xff at character 1)" in report.failed[1].reason
        assert "not JSON" in report.failed[2].reason
        assert {item.output: item.steps for item in memory}["bread"] == ("Knead.", "Bake.")


def test_a_file_read_as_memory_tells_what_it_left_out(tmp_path: Path, caplog):
    path = tmp_path / "p.jsonl"
    path.write_text(f"{GOOD}\nbroken\n")
    with caplog.at_level(logging.WARNING), open_memory(path, embeddings="none") as memory:
        assert memory.count() == 1
    assert f"{path}:2" in caplog.text


def test_a_bom_and_windows_newlines_are_fine(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}\r\n{GOOD}\r\n".encode())
    assert len(read_all(path)) == 2


def test_an_array_that_was_cut_off_gives_what_stands_before(tmp_path: Path):
    path = tmp_path / "p.json"
    path.write_text(f"[\n{GOOD},\n[1],\n{GOOD},\n{GOOD[:20]}")
    assert len([item for _, item in read_procedures(path) if isinstance(item, Procedure)]) == 2
    assert [line for line, _ in failures(path)] == [3, 5]
    assert "rest of the file was not read" in failures(path)[1][1]


def test_json_may_hold_one_object_or_one_a_line(tmp_path: Path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(json.loads(GOOD), indent=2))
    assert [item.output for item in read_all(path)] == ["tea"]
    path.write_text(f"{GOOD}\n{GOOD}\n")
    assert len(read_all(path)) == 2


def test_fields_of_other_names_are_mapped(tmp_path: Path):
    path = tmp_path / "p.csv"
    rows = [
        ["title", "ingredients", "directions", "link", "kind"],
        ["tea", '["leaves", "water"]', '["Boil.", "Pour."]', "a book", "drink"],
        ["soup", "potatoes", "1. Peel.\n2. Boil.", "", ""],
    ]
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    path.write_text(file.getvalue(), newline="")
    fields = {"output": "title", "input": "ingredients", "steps": "directions", "source": "link"}
    tea, soup = [outcome for _, outcome in read_procedures(path, fields=fields)]
    assert (tea.output, tea.input, tea.steps) == ("tea", "leaves, water", ("Boil.", "Pour."))
    assert (tea.source, tea.metadata) == ("a book", {"kind": "drink"})
    assert soup.steps == ("Peel.", "Boil.")


def test_csv_rows_are_named_by_the_line_they_start_on(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text(
        'output,input,steps\ntea,leaves,"1. Boil.\n2. Pour."\nshort,row\n\n"x"y,z,w\nbread,flour,Bake.\n"cut,off'
    )
    assert [(line, getattr(item, "output", None)) for line, item in read_procedures(path)] == [
        (2, "tea"),
        (4, None),
        (6, None),
        (7, "bread"),
        (8, None),
    ]


def test_a_csv_file_may_begin_with_blank_lines(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text("\n\r\noutput,input,steps\n\ntea,leaves,Boil.\n", newline="")
    assert [(line, item.output) for line, item in read_procedures(path)] == [(5, "tea")]


def test_a_long_cell_is_one_record_and_the_next_is_read(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text(
        'output,input,steps\ntea,leaves,"' + "Boil.\n" * 30_000 + '"\nbread,flour,Bake.\n'
    )
    (_, tea), (_, bread) = read_procedures(path)
    assert isinstance(tea, Failed)
    assert "the procedure has 150,009 characters; at most 100,000 are kept" in tea.reason
    assert bread.output == "bread"


def test_what_is_no_uuid_and_no_known_field_goes_into_the_metadata(tmp_path: Path):
    path, own = tmp_path / "p.jsonl", str(uuid.uuid4())
    record = json.loads(GOOD)
    lines = [
        {**record, "id": "tea-1", "topic": "drinks", "metadata": {"by": None}},
        {**record, "id": own},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    first, second = read_all(path)
    assert first.metadata == {"id": "tea-1", "topic": "drinks", "by": None}
    assert first.id == Procedure(output="tea", input="leaves", steps=["Boil.", "Pour."]).id
    assert second.id == own


def test_another_schema_is_told_with_its_fields(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"title": "tea", "directions": "x"}\n' * 2)
    with pytest.raises(
        BadInput,
        match=r"it has no 'output' and no 'input' and no 'steps'; it has title, directions\. .*--map",
    ):
        list(read_procedures(path))
    with pytest.raises(BadInput, match="it has no 'ingredients' and no 'steps'"):
        list(read_procedures(path, fields={"output": "title", "input": "ingredients"}))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("p.jsonl", b"", "is empty"),
        ("p.json", b" \n", "is empty"),
        ("p.json", b"[]", "is empty"),
        ("p.csv", b"output,input,steps\n", "is empty"),
        ("p.jsonl", GOOD.encode("utf-16"), "UTF-16"),
        ("p.txt", GOOD.encode(), "name a .jsonl"),
        ("p.jsonl", b"\x00\x01\x02\n", "no record of .* is a procedure"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=reason):
        read_all(tmp_path / name)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path):
    with pytest.raises(BadInput, match="there is no file"):
        read_all(tmp_path / "p.jsonl")
    (tmp_path / "p.csv").mkdir()
    with pytest.raises(BadInput, match="is a folder"):
        read_all(tmp_path / "p.csv")


def test_a_failed_export_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    path.write_text("old")

    def broken():
        yield Procedure(output="a", input="b", steps=["c"])
        raise MemoryFailure("gone")

    with pytest.raises(MemoryFailure):
        write_jsonl(broken(), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["p.jsonl"]
    with pytest.raises(MemoryFailure, match="cannot be written"):
        write_jsonl([], tmp_path / "missing" / "p.jsonl")
