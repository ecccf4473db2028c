"""Procedures in text files: every record is read or named with its line, and nothing is lost on the way."""

import contextlib
import csv
import json
import logging
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.store.base import GetOp
from langgraph.store.memory import InMemoryStore

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.memory.files import read_all, read_procedures, write_jsonl
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.records import records
from tests.kitchen import dish

GOOD = '{"output": "tea", "input": "leaves", "steps": ["Boil.", "Pour."]}'


@st.composite
def procedures(draw) -> Procedure:
    text = st.text(min_size=1, max_size=20).filter(str.strip)
    values = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.booleans(), max_size=2)
    metadata = draw(st.dictionaries(st.text(max_size=5), values, max_size=2))
    steps = draw(st.lists(text, min_size=1, max_size=3))
    id_ = draw(st.just("") | st.uuids().map(str))
    try:
        return Procedure(draw(text), draw(text), steps, id_, draw(st.text(max_size=8)), metadata)
    except BadInput:
        return Procedure("b", "a", ("c",), metadata=metadata)


@given(st.lists(procedures(), min_size=1, max_size=5))
def test_a_round_trip_through_jsonl_loses_nothing(kept):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.jsonl"
        assert write_jsonl(kept, path) == len(kept)
        assert read_all(path) == kept


@given(st.lists(procedures(), min_size=1, max_size=4))
@example([Procedure("{}", "a", ("c",)), Procedure("b", "[]", ("{}",))])
def test_a_csv_file_has_lists_as_json(kept):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "output", "input", "steps", "metadata"])
            for item in kept:
                lists = json.dumps(item.steps), json.dumps(item.metadata)
                writer.writerow([item.id, item.output, item.input, *lists])
        assert [(item.id, item.steps, item.metadata) for item in read_all(path)] == [
            (item.id, item.steps, item.metadata) for item in kept
        ]


@given(st.binary(max_size=300), st.sampled_from([".jsonl", ".json", ".csv"]))
def test_any_bytes_are_read_or_refused_in_a_sentence(content, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"p{kind}"
        path.write_bytes(content)
        failed: list[Failed] = []
        with contextlib.suppress(BadInput):
            list(read_procedures(path, failed))
        assert all(failure.where.startswith(f"{path}:") for failure in failed)


BREAD = '{"output": "bread", "input": "flour", "steps": "1. Knead.\\n2. Bake."}'
MIXED = {
    "p.jsonl": (
        f'{GOOD}\n{{"output": "x", "input": "y", "steps": []}}\n\n\xff\n{BREAD}\n{GOOD[:30]}',
        {2: "at least one step", 4: "not UTF-8", 6: "not JSON"},
    ),
    "p.json": (f"[\n{GOOD},\n[1],\n{BREAD},\n{GOOD[:20]}", {3: "it is a list", 5: "not JSON"}),
    "p.csv": (
        '\n\noutput,input,steps\ntea,leaves,"1. Boil.\n2. Pour."\nshort,row\n\n"x"y,z,w\n'
        "bread,flour,1. Knead.\\n2. Bake.\n" + 'a,b,"' + "Boil.\n" * 30_000 + '"\n"cut,off',
        {6: "it has 2 cells", 8: "not CSV", 10: "at most 100,000", 30_011: "not CSV"},
    ),
}


@pytest.mark.parametrize(("name", "records"), MIXED.items())
def test_broken_records_are_named_with_their_lines_and_the_others_go_in(
    tmp_path: Path, name: str, records: tuple[str, dict[int, str]]
):
    path, failed = tmp_path / name, list[Failed]()
    text, reasons = records
    path.write_bytes(text.encode("latin-1"))
    assert [item.output for item in read_procedures(path, failed)] == ["tea", "bread"]
    assert [failure.where for failure in failed] == [f"{path}:{line}" for line in reasons]
    for failure, reason in zip(failed, reasons.values(), strict=True):
        assert reason in failure.reason


@pytest.mark.parametrize("key", ["RB-1", "00000000-0000-5000-8000-000000000000"])
def test_a_column_called_id_can_be_the_key(tmp_path: Path, key: str):
    path = tmp_path / "p.csv"
    path.write_text(f"id,output,input,steps\n{key},tea,leaves,1. Boil.\n")
    [tea] = read_procedures(path, [], fields={"key": "id"})
    assert (tea.key, tea.metadata) == (key, {})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("key=link output=title", {"key": "https://w/1", "source": "", "output": "tea"}),
        ("key=link source=link", {"key": "https://w/1", "source": "https://w/1", "output": "tea"}),
        ("key=title output=title", {"key": "tea", "output": "tea"}),
        ("source=title output=title tags=link", {"source": "tea", "tags": {"link": "https://w/1"}}),
        ("key=input input=input", {"key": "leaves", "input": "leaves"}),
    ],
)
def test_a_column_can_be_mapped_to_two_fields(
    tmp_path: Path, fields: str, expected: dict[str, object]
):
    path = tmp_path / "p.csv"
    path.write_text("title,input,output,link\ntea,leaves,1. Boil.,https://w/1\n")
    names = dict(pair.split("=") for pair in ["steps=output", *fields.split()])
    [tea] = read_procedures(path, [], fields=names)
    assert {name: vars(tea)[name] for name in expected} == expected
    assert not tea.metadata.keys() & {*names.values()}


def test_a_misspelt_field_is_refused_with_those_of_the_file(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text("title,needs,steps\ntea,leaves,1. Boil.\n")
    for fields in ({"output": "titel"}, {"key": "titel"}):
        with pytest.raises(BadInput, match="no column 'titel'; its columns are title, needs, ste"):
            list(read_procedures(path, [], fields=fields))
    path = tmp_path / "p.tsv"
    path.write_text("title\tneeds\tsteps\ntea\tleaves\t1. Boil.\n")
    with pytest.raises(BadInput, match="no column 'titel'; its columns are title, needs, steps"):
        list(read_procedures(path, [], fields={"key": "titel"}))
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"title": "tea", "needs": "leaves", "steps": ["Boil."]}))
    with pytest.raises(BadInput, match="no 'output'; it has needs, steps, title"):
        list(read_procedures(path, [], fields={"output": "titel"}))
    [tea] = read_procedures(path, [], fields={"key": "titel"})
    assert tea.output == "tea", "records of JSON may lack a field"


def test_fields_of_other_names_are_mapped(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text(
        "dish,things,how,link,kind\n"
        'tea,"[""leaves"", ""water""]","1. Boil.\n2. Pour.",a book,drink\n'
    )
    fields = {"output": "dish", "input": "things", "steps": "how", "source": "link"}
    [tea] = read_procedures(path, [], fields=fields)
    assert (tea.output, tea.input, tea.steps) == ("tea", "leaves, water", ("Boil.", "Pour."))
    assert (tea.source, tea.metadata) == ("a book", {"kind": "drink"})
    with pytest.raises(BadInput, match=r"no 'output' and no 'input' and no 'steps'.* --map"):
        list(read_procedures(path, []))


def test_columns_with_capital_letters_are_our_fields_too(tmp_path: Path):
    path, own = tmp_path / "p.csv", str(uuid.uuid4())
    header = "Title,Ingredients,Steps,Expires,Source,Tags"
    row = 'tea,leaves,ls|wc,2999-12-31,a book,"{""pot"": ""clay""}"'
    for name, value in (("Key", "page/1"), ("ID", own)):
        path.write_text(f"{header},{name}\n{row},{value}\n")
        [tea] = read_all(path)
        assert (tea.output, tea.input, tea.steps) == ("tea", "leaves", ("ls|wc",))
        assert (tea.expires, tea.source, tea.tags) == ("2999-12-31", "a book", {"pot": "clay"})
        assert value in (tea.key, tea.id)
        assert not tea.metadata


def test_a_record_without_steps_is_refused_with_its_own_fields(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text("id,title,team,needs,howto\nRB-1,tea,kitchen,leaves,1. Boil.\n")
    with pytest.raises(BadInput, match="no 'steps'; it has howto, id, needs, team, title"):
        list(read_procedures(path, []))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("p.jsonl", b"", "is empty"),
        ("p.json", b"[]", "is empty"),
        ("p.csv", b"output,input,steps\n", "is empty"),
        ("p.txt", GOOD.encode(), "name a .jsonl"),
        ("p.jsonl", b"\x00\x01\x02\n", "it is binary"),
        ("missing/p.jsonl", None, "there is no file"),
        (".", None, "is a folder"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name, content, reason):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=reason):
        read_all(tmp_path / name)


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


@pytest.mark.parametrize(
    ("fields", "metadata"),
    [
        ({"source": {"name": "BBC"}}, {"source": {"name": "BBC"}}),
        (
            {"source": ["a book", "p. 3"], "topic": "x"},
            {"source": ["a book", "p. 3"], "topic": "x"},
        ),
        ({"metadata": "vegan", "topic": "drinks"}, {"metadata": "vegan", "topic": "drinks"}),
        ({"metadata": [["a", 1]], "topic": "x"}, {"metadata": [["a", 1]], "topic": "x"}),
        ({"metadata": {"by": "ana"}, "by": "bea"}, {"by": "ana", "by (2)": "bea"}),
        ({"metadata": {"by": "ana"}, "by": "ana"}, {"by": "ana"}),
        ({"metadata": {}, "source": "", "topic": None}, {}),
    ],
)
def test_fields_of_another_form_go_into_the_metadata(
    tmp_path: Path, fields: dict[str, object], metadata: dict[str, object]
):
    (tmp_path / "p.json").write_text(json.dumps([{**json.loads(GOOD), **fields}]))
    [tea] = read_all(tmp_path / "p.json")
    assert (tea.source, tea.metadata) == ("", metadata)


def test_columns_that_say_no_mark_no_procedure(tmp_path: Path):
    path = tmp_path / "p.csv"
    rows = ["no,No", "FALSE,0", "ana,the page is gone", "yes,", ",false"]
    lines = "\n".join(f"tea {number},leaves,1. Boil.,{row}" for number, row in enumerate(rows))
    path.write_text(f"output,input,steps,approved,stale\n{lines}\n")
    assert [each.metadata for each in read_all(path)] == [
        {"approved": False, "stale": False},
        {"approved": False, "stale": False},
        {"approved": "ana", "stale": "the page is gone"},
        {"approved": "yes"},
        {"stale": False},
    ]


def test_tags_may_be_numbers(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    tags = {"year": 2024, "version": 3.11, "stable": True, "town": None, "oven": "stone"}
    path.write_text(json.dumps({**json.loads(GOOD), "tags": tags}))
    [tea] = read_all(path)
    assert tea.tags == {"year": "2024", "version": "3.11", "stable": "true", "oven": "stone"}
    assert not tea.metadata


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        ("platform", {"team": "platform"}),
        ("7", {"team": "7"}),
        ('"{""product"": ""kitchen""}"', {"product": "kitchen"}),
        ("", {}),
        (" ", {}),
    ],
)
def test_a_column_can_be_a_tag(tmp_path: Path, cell: str, tags: dict[str, str]):
    path = tmp_path / "p.csv"
    path.write_text(f"output,input,steps,team\ntea,leaves,1. Boil.,{cell}\n")
    [tea] = read_procedures(path, [], fields={"tags": "team"})
    assert (tea.tags, tea.metadata) == (tags, {})


@pytest.mark.parametrize(
    "step",
    [
        {"step_number": 3, "instruction": "Stir."},
        {"stepNumber": 3, "text": "Stir."},
        {"type": "text", "text": "Stir."},
        {"no": "3.", "kind": "HowToStep", "text": "Stir."},
        {"number": "1.", "text": "Stir."},
        {"number": 1.0, "step": "Stir."},
        {"_id": "64fa0c", "text": "Stir.", "imageUrl": "https://x", "createdAt": "2024-01-01"},
    ],
)
def test_what_a_page_or_database_needs_of_a_step_is_left_out(
    tmp_path: Path, step: dict[str, object]
):
    file = tmp_path / "kept.json"
    file.write_text(json.dumps([{"output": "tea", "input": "pot", "steps": [step]}]))
    [read] = read_procedures(file, [])
    assert read.steps == ("Stir.",)


def test_records_with_one_text_and_different_tags_need_a_key(tmp_path: Path):
    file = tmp_path / "kept.csv"
    rows = ["a,alpha", "b,beta", "c,", "d,alpha"]
    lines = "\n".join(f"mix,pot,Stir.,{row}" for row in rows)
    file.write_text(f"output,input,steps,id,product\n{lines}\n")
    read = list(read_procedures(file, failed := [], fields={"tags": "product"}))
    assert [each.tags.get("product") for each in read] == ["alpha", None, "alpha"]
    assert [failure.where for failure in failed] == [f"{file}:3"]
    assert "--map key=id" in failed[0].reason
    keyed = read_procedures(file, failed := [], fields={"tags": "product", "key": "id"})
    assert (len({each.id for each in keyed}), failed) == (4, [])


def test_a_record_with_an_id_may_have_other_tags_later_in_the_file(tmp_path: Path):
    file = tmp_path / "kept.jsonl"
    write_jsonl([dish(1, tags={"product": each}) for each in ("alpha", "beta")], file)
    assert len(list(read_procedures(file, failed := []))) == 2
    assert failed == []


def test_a_day_of_expiry_may_have_a_time_and_other_forms_are_named(tmp_path: Path):
    file = tmp_path / "kept.csv"
    days = [
        "2020-12-31",
        "2020-12-31 00:00:00",
        "2020-12-31T23:59:59Z",
        "",
        "31.12.2020",
        "12/31/20",
    ]
    rows = "\n".join(f"mix {number},pot,Stir.,{day}" for number, day in enumerate(days))
    file.write_text(f"output,input,steps,until\n{rows}\n")
    read = list(read_procedures(file, failed := [], fields={"expires": "until"}))
    assert [each.expires for each in read] == ["2020-12-31"] * 3 + [""]
    assert [failure.where for failure in failed] == [f"{file}:6", f"{file}:7"]
    assert "expires must be a day such as 2027-01-31, not '31.12.2020'" in failed[0].reason
    file.write_text("output,input,steps,expires\nmix,pot,Stir.,in 3 days\n")
    [mix] = read_procedures(file, failed := [])
    assert (mix.metadata, failed) == ({"expires": "in 3 days"}, [])


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


def test_an_export_to_a_link_writes_the_file_that_it_leads_to(tmp_path: Path):
    shared, link = tmp_path / "shared.jsonl", tmp_path / "p.jsonl"
    shared.touch(0o600)
    link.symlink_to(shared)
    assert write_jsonl([dish(1)], link) == 1
    assert link.is_symlink()
    assert read_all(shared) == [dish(1)]
    assert shared.stat().st_mode & 0o777 == 0o600


def test_an_export_takes_the_place_of_a_link_that_leads_to_itself(tmp_path: Path):
    link = tmp_path / "p.jsonl"
    link.symlink_to(link)
    with pytest.raises(MemoryFailure, match="cannot be written"):
        write_jsonl([dish(1)], link / "q.jsonl")
    assert write_jsonl([dish(1)], link) == 1
    assert read_all(link) == [dish(1)]


def test_an_export_during_another_spoils_neither(tmp_path: Path):
    path = tmp_path / "p.jsonl"

    def slow():
        yield dish(1)
        assert write_jsonl([dish(2)], path) == 1
        assert read_all(path) == [dish(2)]
        yield dish(3)

    assert write_jsonl(slow(), path) == 2
    assert read_all(path) == [dish(1), dish(3)]


def test_a_second_import_reads_what_is_stored_in_batches(tmp_path: Path):
    class Counting(InMemoryStore):
        reads = 0

        def batch(self, ops):
            ops = [*ops]
            self.reads += any(isinstance(op, GetOp) for op in ops)
            return super().batch(ops)

    records = [{**json.loads(GOOD), "output": f"tea {number}"} for number in range(500)]
    (tmp_path / "p.json").write_text(json.dumps(records))
    store = Counting()
    with open_memory("store:", store=store) as memory:
        assert memory.add(read_all(tmp_path / "p.json")).added == 500
        store.reads = 0
        again = read_procedures(tmp_path / "p.json", [], memory=memory)
        assert memory.add(again).present == 500
        assert store.reads < 50


STEPS = ("mix flour and water", "don't knead long")
RECIPES = {
    "a.csv": "title,ingredients,directions\nbread,\"['flour', 'salt']\",\"['mix flour and water', \"\"don't knead long\"\"]\"\n",
    "b.csv": "Title,Ingredients,Instructions\nbread,flour|salt,mix flour and water|don't knead long\n",
    "c.csv": "Name;Ingredients;Method\nbread;flour, salt;\"mix flour and water\ndon't knead long\"\n",
    "d.csv": "name,ingredients,steps\nbread,\"c(\"\"flour\"\", \"\"salt\"\")\",\"c(\"\"mix flour and water\"\", \"\"don't knead long\"\")\"\n",
    "e.json": '{"recipes": [{"title": "bread", "ingredients": ["flour", "salt"], "steps": [{"step": "mix flour and water"}, {"step": "don\'t knead long"}]}]}',
    "f.json": '{"x": {"output": "bread", "input": "flour, salt", "steps": {"1": "mix flour and water", "2": "don\'t knead long"}}}',
    "g.json": '{"@type": "HowTo", "name": "bread", "supply": ["flour", "salt"], "step": [{"@type": "HowToSection", "itemListElement": [{"text": "mix flour and water"}, {"text": "don\'t knead long"}]}]}',
}  # fmt: skip


@pytest.mark.parametrize("name", RECIPES)
def test_procedures_as_people_keep_them(tmp_path: Path, name: str):
    (tmp_path / name).write_text(RECIPES[name], "utf-8")
    [bread] = read_procedures(tmp_path / name, [])
    assert (bread.output, bread.input, bread.steps) == ("bread", "flour, salt", STEPS)


def test_the_tools_of_schema_org_are_needed_as_its_supplies_are(tmp_path: Path):
    tools = [{"@type": "HowToTool", "name": "oven"}, "bowl"]
    record = {"name": "bread", "supply": "flour", "tool": tools, "step": [*STEPS]}
    (tmp_path / "p.json").write_text(json.dumps(record))
    [bread] = read_all(tmp_path / "p.json")
    assert (bread.input, bread.steps, bread.metadata) == ("flour, oven, bowl", STEPS, {})


def test_a_column_called_tool_beside_other_needs_is_metadata(tmp_path: Path):
    (tmp_path / "p.csv").write_text("title,needs,steps,Tool\nrestart web,ssh,1. Stop.,Jenkins\n")
    [restart] = read_all(tmp_path / "p.csv")
    assert (restart.input, restart.metadata) == ("ssh", {"Tool": "Jenkins"})


LEEK, PEA, RYE = (
    {"title": title, "needs": "a pot", "steps": ["Boil."]}
    for title in ("leek soup", "pea soup", "rye bread")
)


@pytest.mark.parametrize(
    ("file", "read", "failed"),
    [
        ({"soups": [LEEK, PEA], "breads": [RYE]}, ["leek soup", "pea soup", "rye bread"], 0),
        (
            {"tags": [{"name": "vegan"}], "soups": [PEA], "breads": [RYE]},
            ["pea soup", "rye bread"],
            0,
        ),
        ({"soups": [PEA], "tags": [{"name": "vegan"}], "cooks": [], "year": 1}, ["pea soup"], 0),
        ({"soups": [PEA], "breads": [{"title": "no steps"}, RYE]}, ["pea soup", "rye bread"], 1),
        ({"soups": [PEA], "notes": [{"date": "1 May", "step": "Buy a pot."}]}, ["pea soup"], 0),
    ],
)
def test_records_in_groups_are_all_read_and_other_lists_are_not(
    tmp_path: Path, file: dict, read: list[str], failed: int
):
    (tmp_path / "p.json").write_text(json.dumps(file))
    failures: list[Failed] = []
    assert [each.output for each in read_procedures(tmp_path / "p.json", failures)] == read
    assert len(failures) == failed


def test_what_is_said_around_records_goes_into_their_metadata(tmp_path: Path, caplog):
    exported = Procedure("flour", "bread", ("Mix.", "Bake."), metadata={"by": "ana"}).to_dict()
    around = {"title": "soups", "source": "a book", "by": {"name": "bea"}, "tags": ["hot"]}
    file = {
        **around,
        "notes": [*range(1_000)],
        "cooks": [],
        "soups": [PEA, {**LEEK, "source": "web"}],
        "breads": [exported],
    }
    (tmp_path / "p.json").write_text(json.dumps(file))
    with caplog.at_level(logging.WARNING):
        pea, leek, bread = read_procedures(tmp_path / "p.json", failed := [])
    assert (pea.output, pea.source, pea.metadata) == ("pea soup", "", around)
    assert (leek.output, leek.source, leek.metadata) == ("leek soup", "web", around)
    assert (bread.output, bread.metadata) == ("bread", {**around, "by": "ana"})
    assert failed == []
    assert "line 1: fields around the records are left out: notes" in caplog.text


def test_a_record_with_objects_like_procedures_is_still_one_record(tmp_path: Path):
    parts = [{"name": "dough", "step": ["Mix."]}, {"name": "filling", "step": ["Chop."]}]
    (tmp_path / "p.json").write_text(json.dumps({"title": "pie", "needs": "nuts", "steps": parts}))
    assert [each.output for each in read_all(tmp_path / "p.json")] == ["pie"]
    (tmp_path / "p.json").write_text(json.dumps({"title": "pie", "needs": "nuts", "how": parts}))
    with pytest.raises(BadInput, match="no 'steps'; it has how, needs, title"):
        read_all(tmp_path / "p.json")


def test_steps_and_resources_that_look_like_lists_are_exported_and_imported_as_they_are(
    tmp_path: Path,
):
    body = ('{"name": "ana", "age": 3}', "[1, 2]", "['x']", 'c("a", "b")', "1. One\n2. Two")
    kept = [Procedure(text, "send JSON", (text, *body)) for text in body]
    write_jsonl(kept, tmp_path / "p.jsonl")
    assert read_all(tmp_path / "p.jsonl") == kept
    lists = [{"output": each.output, "input": "curl", "steps": [*each.steps]} for each in kept]
    (tmp_path / "q.json").write_text(json.dumps(lists))
    assert [each.steps for each in read_all(tmp_path / "q.json")] == [each.steps for each in kept]


@pytest.mark.parametrize(
    ("input_", "needs", "steps", "texts"),
    [
        (["flour"], "flour", ["Mix."], ["Mix."]),
        ('["flour"]', "flour", '["Mix."]', ["Mix."]),
        ('c("flour")', "flour", 'c("Mix.")', ["Mix."]),
        ({"flour": "500 g", "salt": 1}, "flour: 500 g, salt: 1", {"1": "Mix."}, ["Mix."]),
        ("[{1: 'flour'}]", "[{1: 'flour'}]", "{1: 'Mix.'}", ["{1: 'Mix.'}"]),
        (
            [{"name": "flour", "amount": 500, "unit": "g"}, "salt"],
            "flour 500 g, salt",
            {"step1": "Mix.", "step10": "Serve.", "step2": "Bake."},
            ["Mix.", "Bake.", "Serve."],
        ),
        (
            "flour",
            "flour",
            [{"step": 1, "action": "Mix."}, {"name": "Install", "code": "pip install x"}],
            ["Mix.", "Install\npip install x"],
        ),
        (
            [{"name": "eggs", "number": 3}, {"text": "flour", "amount": "500 g"}],
            "eggs 3, flour 500 g",
            [
                {"number": 1, "instruction": "Pause it.", "command": "ferry pause", "ok": None},
                {"number": 2, "text": "Bake it.", "minutes": 50, "heat": "220 C", "hot": True},
            ],
            ["Pause it.\nferry pause", "Bake it.\nminutes: 50\n220 C"],
        ),
        (
            [{"text": "eggs", "number": 2}, {"text": "onions", "number": 1}],
            "eggs number: 2, onions number: 1",
            [
                {"id": "a1", "step": "Heat to 200.", "position": "0", "tip": "Wait."},
                {
                    "id": "a2",
                    "step": "Step 2",
                    "text": "Bake.",
                    "position": "1",
                    "tools": [{"id": 9}],
                },
            ],
            ["Heat to 200.\nWait.", "Bake."],
        ),
        (
            [{"text": "flour", "brands": [], "amount": {"unit": "g", "value": 500}}],
            "flour unit: g value: 500",
            [
                {"instruction": "Drain it.", "commands": ["cordon n1", "[1, 2]"], "done": []},
                {"step": {"text": "Wait."}, "substeps": [{"id": 7, "name": "Watch it."}]},
                {"title": "Restart", "step": ["Stop it.", "Start it."], "note": "Slowly."},
                {"step": [""], "tools": [{"id": 9}]},
                "Tell the team.",
            ],
            [
                "Drain it.\ncordon n1\n[1, 2]",
                "Wait.\nWatch it.",
                "Restart\nStop it.",
                "Start it.\nSlowly.",
                "Tell the team.",
            ],
        ),
        (
            {"Dough": ["flour", "water"], "Filling": ["nuts"], "Topping": [], "salt": 1},
            "Dough: flour, water, Filling: nuts, salt: 1",
            {"Dough": ["Mix.", {"text": "Knead."}], "Filling": {"do": "Chop."}},
            ["Dough: Mix.", "Knead.", "Filling: Chop."],
        ),
        (
            {"flour": {"amount": 500, "unit": "g"}},
            "flour: 500 g",
            {"list": ["Mix.", "Bake."]},
            ["Mix.", "Bake."],
        ),
        (
            [
                {"@type": "HowToSupply", "name": "flour", "requiredQuantity": "500 g"},
                {
                    "@type": "HowToSupply",
                    "name": "oil",
                    "requiredQuantity": {"@type": "QuantitativeValue", "value": 2},
                },
            ],
            "flour 500 g, oil value: 2",
            [
                {
                    "@type": "HowToSection",
                    "name": "Dough",
                    "itemListElement": [
                        {"@type": "HowToStep", "name": "Mix", "text": "Mix it."},
                        {"@type": "HowToStep", "text": "Knead it."},
                    ],
                },
                {
                    "@type": "HowToStep",
                    "text": "Bake it.",
                    "itemListElement": [{"@type": "HowToTip", "text": "On a stone."}],
                },
            ],
            ["Dough\nMix it.", "Knead it.", "Bake it.\nOn a stone."],
        ),
        (
            [{"@type": "HowToSupply", "name": "flour", "image": "f.png"}],
            "flour",
            [
                {"@type": "HowToStep", "name": "Mix.", "url": "#1"},
                {"@type": "HowToStep", "name": "Bake", "text": "Bake it.", "image": "b.png"},
            ],
            ["Mix.", "Bake it."],
        ),
        (
            [{"name": "flour", "type": "wholemeal", "amount": "500 g"}],
            "flour wholemeal 500 g",
            [
                {"question": "Is it hot?", "yes": "Go to step 4.", "no": "Go to step 2."},
                {"action": "delete", "kind": "Pod", "name": "web-0"},
                {"text": "Open the page", "url": "https://g/d", "step": "Page 3"},
            ],
            [
                "Is it hot?\nGo to step 4.\nGo to step 2.",
                "delete\nPod\nweb-0",
                "Open the page\nhttps://g/d\nPage 3",
            ],
        ),
        (
            {"M8": "4 bolts", "M10": "2 bolts"},
            "M8: 4 bolts, M10: 2 bolts",
            {"Step 1": "Drill.", "Step 2": "Screw."},
            ["Drill.", "Screw."],
        ),
        (
            {"ing1": "flour", "ing2": "salt"},
            "flour, salt",
            {"Stage 1": "Mix.", "Stage 10": "Serve.", "Stage 2": "Bake."},
            ["Mix.", "Bake.", "Serve."],
        ),
        ("tea", "tea", {"\u6b65\u9aa41": "Boil.", "\u6b65\u9aa42": "Pour."}, ["Boil.", "Pour."]),
        (
            "broom",
            "broom",
            {"Room 2": "Sweep it.", "Room 1": "Air it."},
            ["Room 1: Air it.", "Room 2: Sweep it."],
        ),
    ],
)
def test_nothing_that_a_list_says_is_left_out(
    tmp_path: Path, input_: object, needs: str, steps: object, texts: list[str]
):
    path = tmp_path / "p.json"
    path.write_text(json.dumps([{"title": "bread", "ingredients": input_, "steps": steps}]))
    [bread] = read_all(path)
    assert (bread.input, [*bread.steps]) == (needs, texts)


@pytest.mark.parametrize(
    ("cell", "outside"),
    [
        ("Tell the team.\n\n1. Stop.\n2. Start.\n\nClose it.", "Tell the team.\nClose it."),
        ("Stop these:\nweb\nworker", "Stop these:"),
        ("# become root first\nsudo -i\nsystemctl stop web", "# become root first"),
        ("1. Mix.\n2. Bake.\n\n## Notes\nContains nuts.", "## Notes\nContains nuts."),
        ("Steps:\n1 - Mix.\n2 - Bake.", None),
        ("1. Mix:\n   ```\n   mix 1\n   ```\n2. Bake.", None),
        ("Mix it. Bake it.", None),
    ],
)
def test_lines_around_the_steps_of_a_cell_are_kept(tmp_path: Path, cell: str, outside: str | None):
    with (tmp_path / "p.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["output", "input", "steps"], ["bread", "flour", cell]])
    [bread] = read_all(tmp_path / "p.csv")
    assert len(bread.steps) == 2
    assert bread.metadata.get("outside_steps") == outside


def test_tables_of_a_spreadsheet(tmp_path: Path, caplog):
    path, failed = tmp_path / "p.csv", list[Failed]()
    text = "Export of today\n\ntitle;needs;method\nT\u00fcr \u00f6ffnen;Schl\u00fcssel;1. Drehen.\ntitle;needs;method\n"
    path.write_bytes(text.encode("cp1252"))
    with caplog.at_level(logging.WARNING):
        [door] = read_procedures(path, failed)
    assert (door.output, door.input) == ("T\u00fcr \u00f6ffnen", "Schl\u00fcssel")
    assert [each.reason for each in failed] == [
        "it stands above the header",
        "it repeats the header",
    ]
    assert "it is not UTF-8" in caplog.text
    path.write_text("title,needs,steps\nx,y,ls | grep z\n")
    assert [each.steps for each in read_procedures(path, [])] == [("ls | grep z",)]
    other = tmp_path / "q.jsonl"
    other.write_text(GOOD, "utf-16")
    assert len(read_all(other)) == 1


CELL = '"| try | wait |\n|---|---|\n| 1 | 5; 6 s |\n| 2;3 | 30 s |"'


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f"title,text\nRetry,{CELL}\nB,b", {"title": "Retry", "text": CELL[1:-1]}),
        (f"title;text\nRetry;{CELL}\nB;b", {"title": "Retry", "text": CELL[1:-1]}),
        ("sep=;\ntitle;text\nA, b;c", {"title": "A, b", "text": "c"}),
        ("name,,name\na,b,c", {"name": "a", "column 2": "b", "name (3)": "c"}),
    ],
)
def test_the_cells_of_a_table_decide_neither_its_delimiter_nor_its_columns(
    tmp_path: Path, text: str, values: dict[str, str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    assert next(records(file)).values == values


@pytest.mark.parametrize("number", ["", "1. "])
def test_the_code_of_a_single_step_keeps_its_lines(tmp_path: Path, number: str):
    step = "Restart it:\n```sh\nrestart web\nstatus web\n```"
    with (tmp_path / "p.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["output", "input", "steps"], ["web", "ssh", number + step]])
    [web] = read_all(tmp_path / "p.csv")
    assert (web.steps, web.metadata) == ((step,), {})
