# The agent of docs/tutorials/into-your-agent.md with a real model: 12 calls of the graph at most.
python - <<'END'
from langchain.agents import create_agent
from stepcraft import Procedure, as_tool, build_aag, open_memory

memory = open_memory("ferrywire.db")
rotate = (
    "Add a second key with `ferry key add RECEIVER`.",
    "Give the receiver the new key, and restart it.",
    "Remove the old key with `ferry key retire RECEIVER --oldest`.",
)
deliver = (
    "List them with `ferry dead list RECEIVER`.",
    "Send them once more with `ferry dead replay RECEIVER`.",
    "Watch `ferry queue RECEIVER` until it is empty.",
)
memory.add(
    [
        Procedure(input="a Ferrywire server", output="rotate the signing key of a receiver", steps=rotate),
        Procedure(input="a Ferrywire server", output="deliver the dead letters of a receiver", steps=deliver),
    ]
)

aag = build_aag(memory=memory, model="openai:assistant")
tool = as_tool(aag, name="write_procedure", context={"max_calls": 12})
agent = create_agent("openai:assistant", [tool])
result = agent.invoke({"messages": [("user", "The key of billing has leaked. What now?")]})
for message in result["messages"]:
    message.pretty_print()
END
