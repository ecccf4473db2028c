"""Names in the code of steps."""

import pytest

from stepcraft.text.names import mentions, names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Call `add_node` on the graph.", ["add_node"]),
        ("Call `invoke()`.", ["invoke"]),
        ("Install `langgraph`.", ["langgraph"]),
        ("Run `ls`, then `git`.", ["git"]),
        ("Run `pip install langgraph-cli --upgrade`.", ["--upgrade"]),
        ("Set `OPENAI_API_KEY` in `config.yaml`.", ["OPENAI_API_KEY", "config.yaml"]),
        ("Look in `ferry key --help` for it.", []),
        ("Pass `max_hops=InMemorySaver()` on.", ["max_hops", "InMemorySaver"]),
        ("No code: add_node and StateGraph.", []),
        ("`x`, `True`, `print`, `self.graph`", ["graph"]),
        (
            "Write:\n```python\nfrom langgraph.graph import StateGraph  # not_this\n\nbuilder = StateGraph(State)\n"
            "builder.add_node('other_name', call_model)\nprint(builder.x)\n```",
            ["langgraph.graph", "StateGraph", "add_node", "call_model"],
        ),
        ("Write:\n```python\nclass My_State:\n    pass\nMy_State()\n```", []),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    assert list(names_in([text])) == names


def test_the_first_step_of_a_name() -> None:
    assert names_in(["Mix.", "Call `a_b` and `c_d`.", "Call `a_b` again."]) == {"a_b": 2, "c_d": 2}


def test_what_one_step_defines_is_no_name_in_another() -> None:
    steps = ["```\nmy_graph = make_graph()\n```", "Run `my_graph.invoke`."]
    assert names_in(steps) == {"make_graph": 1, "invoke": 2}


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("use add_node here", "add_node", True),
        ("use add_nodes here", "add_node", False),
        ("use my_add_node, then add_node.", "add_node", True),
        ("from langgraph.graph import StateGraph", "langgraph.graph.StateGraph", True),
        ("from langgraph.graph import StateGraph", "langgraph.graph.MessageGraph", False),
        ("pass --verbose", "--verbose", True),
        ("Add_Node", "add_node", False),
        ("up --force-recreate", "--force", False),
        ("run --dry-run=client, --force.", "--dry-run", True),
        ("run --dry-run=client, --force.", "--force", True),
        ("copy app.yaml.example", "app.yaml", False),
        ("an app reads yaml", "app.yaml", False),
        ("open src/app.yaml.", "app.yaml", True),
        ("install redis-py", "redis", False),
        ("my-agent-server", "my-agent", False),
        ("docker-compose.yml", "docker-compose", False),
        ("a StateGraph-based agent", "StateGraph", True),
        ("Срок — год.", "год", True),
        ("Оплата в течение года.", "год", False),
    ],
)
def test_a_name_is_looked_up_exactly(text: str, name: str, found: bool) -> None:
    assert mentions(text, name) is found
