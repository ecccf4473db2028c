"""What steps name and their document does not have."""

import pytest

from stepcraft.building.grounding import Grounds

PAGE = """\
# Add a store
Install it with `pip install "langgraph-store>=1.2" --upgrade`; Python 3.11 is needed.
```python
store = InMemoryStore(index={"dims": 1536})
store.put(("users",), "user_123", {"name": "John"})
graph = builder.compile(store=store)
```
Set `LANGGRAPH\\_STORE_URL` in the `.env` file. At most 1,000 items are kept for three days. Press **Save changes**.
"""


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        ("Run `pip install --upgrade 'langgraph-store>=1.2'` on Python 3.11.", []),
        ("Create `InMemoryStore( index = {'dims': 1536} )`.", []),
        ("Call `store.put((\"users\",), 'user_123', ...)` with `<your name>`.", []),
        ("Set `LANGGRAPH_STORE_URL` and press `Save Changes`; 1000 items are kept for 3 days.", []),
        ("Call `my_graph.compile(store=store)` on your graph, as in step 7.", []),
        ("Go on with `cd my-app` and `import json`, then `print(len(items))`.", []),
        ('Call `builder.compile(store=store, index="Any words of your own")`.', []),
        ("Create `PostgresStore(index={'dims': 768})`.", ["PostgresStore", "768"]),
        ("Call `store.search(...)`.", ["store.search"]),
        ("Run `pip install langgraph-stores`.", ["langgraph-stores"]),
        ("Add `--force`, or --dry-run.", ["--force", "--dry-run"]),
        ("Call store.delete() and set max_items to 500.", ["store.delete", "max_items", "500"]),
        ("Use `inmemorystore`.", ["inmemorystore"]),
        ("Python 3.12 is needed.", ["3.12"]),
    ],
)
def test_what_a_step_names(step: str, missing: list[str]) -> None:
    assert Grounds(PAGE).missing([step]) == ({1: missing} if missing else {})


def test_what_one_step_defines_is_known_to_the_next() -> None:
    steps = [
        "```python\nshop = InMemoryStore()\n```",
        "Pass `shop` to `builder.compile(store=shop)`.",
        "Call `shop.x1`.",
    ]
    assert Grounds(PAGE).missing(steps) == {}
    assert Grounds(PAGE).missing(steps[1:]) == {1: ["shop"], 2: ["shop.x1"]}


def test_a_page_in_another_script() -> None:
    page = "\u4f7f\u7528add_node\u51fd\u6570\uff0c\u8bbe\u7f6emax_items=50\u3002"
    steps = [
        "\u8c03\u7528`add_node`\u3002",
        "\u8bbe\u7f6e`max_items=50`\u3002",
        "\u8c03\u7528`add_edge`\u3002",
    ]
    assert Grounds(page).missing(steps) == {3: ["add_edge"]}


def test_an_escaped_line_break_is_no_part_of_a_name() -> None:
    """The arguments of calls are written as JSON in transcripts."""
    page = r'command: "cd /srv\nmakeplus migrate\n--fake", and \newcommand'
    steps = ["Run `makeplus migrate --fake`.", r"Write `\newcommand`.", "Run `akeplus`."]
    assert Grounds(page).missing(steps) == {3: ["akeplus"]}
