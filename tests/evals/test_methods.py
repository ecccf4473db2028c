"""Methods of one's own: graphs on a server and functions; models with colons in their names."""

import json
import os
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph

from stepcraft.errors import BadInput, NoAnswer
from stepcraft.evals.directory import read_configuration, read_outcomes
from stepcraft.evals.methods import (
    Method,
    OwnMethod,
    plain_output,
    read_methods,
    read_named_method,
)
from stepcraft.evals.prices import Prices
from stepcraft.evals.samples import Sample, repeated
from stepcraft.evals.summary import summarise
from tests.evals.asked import samples
from tests.evals.runs import problem_of, questions, run, stepcraft, stopped
from tests.scripted import ScriptedModel
from tests.shelf import Shelf


class Runs:
    """What a `RemoteGraph` asks of a LangGraph client, with the state that a run ends in."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.inputs: list[Any] = []

    async def stream(self, **request: Any) -> Any:
        self.inputs.append(request["input"])
        for mode in request["stream_mode"]:
            yield type("Part", (), {"event": mode, "data": self.state})


class Client:
    def __init__(self, state: dict[str, Any]) -> None:
        self.runs = Runs(state)


def remote(state: dict[str, Any]) -> tuple[RemoteGraph, Client]:
    client: Any = Client(state)
    return RemoteGraph("aag", client=client, sync_client=client), client


def test_a_graph_on_a_server_is_a_method_and_says_what_it_used(tmp_path: Path) -> None:
    usage = {"calls": 3, "input_tokens": 1_000_000, "output_tokens": 0, "nodes": {}}
    state = {"answer": "0", "usage": usage, "warnings": ["slow"], "messages": [object()]}
    graph, client = remote(state)
    method = OwnMethod("served", graph, model="openai:gpt-5")
    [outcome] = run(tmp_path, asked=1, methods=[method], prices=Prices.of(["openai:gpt-5=2/1"]))
    assert outcome["error"] == ""
    assert client.runs.inputs == [{"question": "Question 0?"}]
    assert (outcome["output"], outcome["warnings"]) == ({"answer": "0"}, ["slow"])
    assert (outcome["usage"]["calls"], outcome["usd"]) == (3, 2.0)
    assert outcome["scores"]["exact match"] == 1


@pytest.mark.parametrize(
    ("data", "is_unanswered"),
    [
        (NoAnswer("nothing was found").dict(), True),
        (BadInput("no question").dict(), False),
        ({"message": "NoAnswer: internal"}, False),
        ("NoAnswer", False),
    ],
)
def test_a_graph_on_a_server_that_gives_up_is_wrong(
    tmp_path: Path, data: Any, is_unanswered: bool
) -> None:
    def answer(given: dict[str, str]) -> str:
        if given["question"] == "Question 0?":
            return "0"
        raise RemoteException(data)

    [_, outcome] = run(tmp_path, asked=2, methods=[OwnMethod("served", answer)])
    assert (outcome["scores"] != {}) == is_unanswered
    assert (outcome["error"] == "NoAnswer: nothing was found") == is_unanswered


def test_an_error_of_a_similar_name_has_no_score(tmp_path: Path) -> None:
    class NoAnswerFromHost(Exception):
        pass

    def answer(given: dict[str, str]) -> str:
        if given["question"] == "Question 0?":
            return "0"
        raise NoAnswerFromHost

    run(tmp_path, asked=2, methods=[OwnMethod("mine", answer)])
    [summary] = summarise(tmp_path).methods
    assert (summary.unanswered, summary.failed) == (0, 1)


def test_a_run_that_waits_for_a_person_is_one_failure_and_asked_once(tmp_path: Path) -> None:
    graph, client = remote({"__interrupt__": [{"value": "accept?"}]})
    [outcome] = stopped(tmp_path, "waits", asked=1, methods=[OwnMethod("served", graph)])
    assert "waits for a person" in outcome["error"]
    assert len(client.runs.inputs) == 1


def test_a_function_is_a_method(tmp_path: Path) -> None:
    async def answer(given: dict[str, str]) -> str:
        return given["question"][9]

    outcomes = run(tmp_path, methods=[OwnMethod("mine", answer)])
    assert [outcome["scores"]["exact match"] for outcome in outcomes] == [1, 1, 1]


def test_evidence_of_another_form_is_an_error_of_the_sample(tmp_path: Path) -> None:
    method = OwnMethod("mine", lambda _: {"answer": "0", "evidence": ["no passage"]})
    [outcome] = stopped(tmp_path, "the evidence of an output", asked=1, methods=[method])
    assert "evidence" in outcome["error"]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("rag:model=openai:gpt-5", {"model": "openai:gpt-5"}),
        ("rag:model=ollama:llama3:8b:k=3", {"model": "ollama:llama3:8b", "k": "3"}),
    ],
)
def test_values_of_settings_may_have_colons(text: str, settings: dict[str, str]) -> None:
    [method] = read_methods(text, {"model": "openai:other"})
    assert {"model": "openai:other", **settings} == {**method.settings, **method.options}


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("ollama:llama3:8b", None),
        ("llama3:8b", None),
        ("ollama:qwen3:8b", 1.0),
        ("qwen3:8b", 1.0),
    ],
)
def test_a_tag_is_part_of_the_name_of_a_model(model: str, price: float | None) -> None:
    priced = Prices.of(["ollama:qwen3:8b=1/1"]).price(model)
    assert (priced and priced.read) == price


def test_no_answer_fails_pass_at_k_and_its_calls_were_paid(tmp_path: Path) -> None:
    def answer(sample: Sample) -> dict[str, Any]:
        if sample["task"] == "4":
            raise RuntimeError("no network")
        if sample["task"] != "0":
            raise NoAnswer("no such luck")
        return {"answer": "x", "usage": {"calls": 2, "input_tokens": 10}}

    async def score(_sample: Sample, _output: object) -> dict[str, float]:
        return {"pass@1": 1.0, "length": 1.0}

    method = OwnMethod("mine", answer, input=lambda sample: sample)
    run(tmp_path, asked=repeated(samples(5), 2), methods=[method], scorers=[score])
    [summary] = summarise(tmp_path).methods
    assert (summary.samples, summary.unanswered, summary.failed) == (10, 6, 2)
    means = {name: interval.mean for name, interval in summary.scores.items()}
    assert means == {"pass@1": 1 / 4, "pass@2": 1 / 4, "length": 1 / 4}
    assert summary.costs["calls"] == 0.4


def test_a_method_that_always_fails_has_its_costs(tmp_path: Path) -> None:
    model = ScriptedModel(lambda *_: "three tokens")

    async def answer(_question: object) -> Any:
        await model.ainvoke([HumanMessage("?")])
        raise NoAnswer("no such luck")

    methods, prices = [OwnMethod("mine", answer)], Prices.of(["0/1000000"])
    outcomes = stopped(tmp_path, "all 2 samples", asked=2, methods=methods, prices=prices)
    assert [outcome["usd"] for outcome in outcomes] == [3.0, 3.0]
    [summary] = summarise(tmp_path).methods
    assert (summary.unanswered, summary.costs["calls"]) == (2, 1.0)


def shout(question: str) -> str:
    return question.upper()


async def passages(question: str) -> dict[str, Any]:
    return {"answer": question[9], "evidence": [{"text": "0"}]}


def chat_agent() -> Any:
    def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage([{"type": "text", "text": state["messages"][0].text[9]}])]}

    graph = StateGraph(MessagesState).add_node("reply", reply)
    return graph.add_edge(START, "reply").compile()


class Plain(typing.TypedDict):
    question: str
    answer: str


def plain_agent() -> Any:
    graph = StateGraph(Plain).add_node("reply", lambda state: {"answer": state["question"][9]})
    return graph.add_edge(START, "reply").compile()


chain = RunnableLambda(lambda question: AIMessage(question[9]))
number = 7


@pytest.mark.parametrize("attribute", ["passages", "chat_agent", "plain_agent", "chain"])
def test_ones_own_method_on_the_command_line(tmp_path: Path, attribute: str) -> None:
    method = f"mine=tests.evals.test_methods:{attribute}"
    ran = stepcraft(f"run {questions(tmp_path, 3)} --method {method} --into {tmp_path / 'run'}")
    assert ran.exit_code == 0, ran.output
    scores = [each["scores"]["exact match"] for each in read_outcomes(tmp_path / "run")]
    assert scores == [1, 1, 1]
    assert list(read_configuration(tmp_path / "run")["methods"]) == ["mine"]


ANSWERING = """\
def answer(question):
    return "The 1"


def other(question):
    return "2"
"""
SEARCHING = "from tests.shelf import Shelf\n\nshelf = Shelf(name='The shelf')\n"
PROCEDURE = '{"output": "The 1", "input": "spoon", "steps": ["Stir."]}'


@pytest.mark.parametrize(
    ("file", "text", "method", "what"),
    [
        ("answering.py", ANSWERING, "mine=answering:answer", "answering:answer"),
        ("searching.py", SEARCHING, "mine=rag:sources=searching:shelf", "searching:shelf"),
        ("docs/a.md", "The answer is 1.", "mine=rag:sources=corpus:docs", "corpus:docs"),
        ("own.jsonl", PROCEDURE, "mine=rag:memory=own.jsonl", "own.jsonl"),
    ],
)
def test_answers_of_earlier_code_or_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, method: str, what: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    Path(file).write_text(text)
    command = f"run {questions(tmp_path, 2)} --allow-keyless --into run --method"
    for _ in range(2):
        assert stepcraft(f"{command} {method}").exit_code == 0
        Path(file).write_text(text.replace('"2"', '"3"'))
        os.utime(file, (0, 0))
    Path(file).write_text(text.replace("The", "Any"))
    problem = f"run has answers of mine with an earlier version of {what}; name another directory"
    for name in ("mine", "added"):
        assert problem in problem_of(f"{command} {method.replace('mine', name)}")
    assert stepcraft(f"{command} other=direct").exit_code == 0


def test_an_evaluation_within_its_corpus_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.md").write_text("The answer is 1.")
    command = f"run {questions(tmp_path, 2)} --allow-keyless --into run --method mine=rag:sources="
    for _ in range(2):
        assert stepcraft(f"{command}corpus:.").exit_code == 0


def test_a_result_without_an_answer_is_unanswered(tmp_path: Path) -> None:
    method = OwnMethod("mine", lambda _question: {"generation": "7"})
    outcomes = stopped(tmp_path, "all 2 samples", asked=2, methods=[method])
    assert all("neither `answer` nor `steps`" in str(each) for each in outcomes)


def test_methods_by_name_beside_others_with_commas_in_their_settings() -> None:
    method = read_named_method("brief=rag:k=3:answer_instructions=Short, and kind", {})
    assert isinstance(method, Method)
    assert method.name == "brief"
    assert method.settings == {"k": "3", "answer_instructions": "Short, and kind"}


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("tests.evals.test_methods:shout", "has no name; write --method name=method"),
        ("mine=tests.evals.test_methods:nothing", "nothing cannot be made"),
        ("mine=tests.evals.test_methods:number", "is a int; name a Runnable, or a function"),
        ("mine=rga", "there is no graph 'rga'"),
        ("mine=http://127.0.0.1:9/agent", "is no assistant of a LangGraph deployment"),
    ],
)
def test_named_methods_that_cannot_be_used(method: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        read_named_method(method, {})


def test_a_deployment_by_its_url(tmp_path: Path) -> None:
    asked: list[Any] = []

    class Deployment(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send("application/json", json.dumps(SCHEMAS))

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            asked.append(json.loads(self.rfile.read(size))["input"])
            state = {"messages": [{"type": "ai", "content": "0"}]}
            self._send("text/event-stream", f"event: values\ndata: {json.dumps(state)}\n\n")

        def _send(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with serving(Deployment) as url:
        method = read_named_method(f"mine={url}/agent", {})
        [outcome] = run(tmp_path, asked=1, methods=[method])
    assert outcome["output"] == {"answer": "0"}
    assert asked == [{"messages": [["user", "Question 0?"]]}]


SCHEMAS = {"graph_id": "agent", "input_schema": {"properties": {"messages": {}}}}


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_answers_rest_on_is_in_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def searched(text: str, **fields: Any) -> Any:
        [method] = read_methods(text, fields)
        return method.described()["searched"]

    monkeypatch.delenv("STEPCRAFT_MEMORY", raising=False)
    assert searched("direct") == []
    assert searched("rag") == ["the bundled procedures"]
    assert searched("rag", sources=["corpus:docs/", "web"]) == ["corpus:docs/", "web"]
    assert searched("aag", memory="mine.db") == ["mine.db"]
    assert searched("rag", sources={"docs": "corpus:docs/"}) == ["docs"]
    assert searched("rag", sources=[Shelf(), Shelf(name="pages")]) == ["Shelf-1", "Shelf-2"]
    [react] = read_methods("react:max_searches=7", {})
    assert react.described()["limits"] == {"max_searches": 7, "max_calls": None, "deadline_s": None}
    monkeypatch.setenv("STEPCRAFT_MEMORY", "team.db")
    assert searched("rag") == ["team.db"]
    monkeypatch.setenv("STEPCRAFT_SOURCE", "corpus:docs/")
    assert searched("rag") == ["corpus:docs/"]
    assert searched("aag") == ["team.db"]
    assert searched("aag", sources=["web"]) == ["web", "team.db"]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Yes.", "Yes."),
        (None, ""),
        ([HumanMessage("Is it old?"), AIMessage("Yes.")], "Yes."),
        ({"messages": [AIMessage("Yes.")]}, "Yes."),
    ],
)
def test_the_answer_in_a_result(result: Any, answer: str) -> None:
    assert plain_output(result)["answer"] == answer


def test_a_chat_keeps_its_evidence_and_steps() -> None:
    found = {"evidence": [{"text": "It is of 1566."}], "steps": ["Look."]}
    chat = {"messages": [HumanMessage("Is it old?"), AIMessage("Yes.")], "plan": "none"}
    assert plain_output({**chat, **found}) == {"answer": "Yes.", **found}
    for other in (["It is of 1566."], [{"page_content": "It is of 1566."}]):
        assert plain_output({**chat, "evidence": other}) == {"answer": "Yes."}
    assert plain_output({**chat, "evidence": None, "steps": 7}) == {"answer": "Yes."}


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        (HumanMessage("Is it old?"), ""),
        (ToolMessage("1566", tool_call_id="1"), ""),
        (SystemMessage("Be kind."), ""),
        (("user", "Is it old?"), ""),
        ({"role": "assistant", "content": "Yes."}, "Yes."),
        (AIMessageChunk("Yes."), "Yes."),
        (ChatMessage("Yes.", role="expert"), "Yes."),
        (HumanMessage("Yes.", name="researcher"), "Yes."),
        (ToolMessage("1566", tool_call_id="1", name="look"), "1566"),
    ],
)
def test_only_a_reply_is_the_answer_of_a_chat(last: Any, answer: str) -> None:
    assert plain_output({"messages": [AIMessage("Well."), last]})["answer"] == answer


def test_what_a_run_without_an_answer_used_is_counted(tmp_path: Path) -> None:
    used = {"usage": {"calls": 3, "input_tokens": 9_000}, "warnings": ["nothing was found"]}

    def answer(given: dict[str, str]) -> dict[str, Any]:
        return {"answer": given["question"][9].replace("1", ""), **used}

    methods = [OwnMethod("mine", answer)]
    outcomes = run(tmp_path, asked=2, methods=methods, prices=Prices.of(["1000/1"]))
    assert [each["output"] for each in outcomes] == [{"answer": "0"}, {}]
    assert "NoAnswer: the result has neither `answer` nor `steps`" in outcomes[1]["error"]
    for each in outcomes:
        assert used.items() <= {**each}.items()
        assert each["usd"] == 9.0


def test_a_list_is_no_answer() -> None:
    with pytest.raises(TypeError, match="not another list"):
        plain_output(["a", "b"])
