# The project of docs/tutorials/server-and-studio.md with a real model: 12 calls at most.
stepcraft memory add --memory ferrywire.db --output "rotate the signing key of a receiver" \
  --input "a Ferrywire server" \
  --step 'Add a second key with `ferry key add RECEIVER`.' \
  --step 'Give the receiver the new key, and restart it.' \
  --step 'Remove the old key with `ferry key retire RECEIVER --oldest`.' > added.log

stepcraft memory add --memory ferrywire.db --output "deliver the dead letters of a receiver" \
  --input "a Ferrywire server" \
  --step 'List them with `ferry dead list RECEIVER`.' \
  --step 'Send them once more with `ferry dead replay RECEIVER`.' \
  --step 'Watch `ferry queue RECEIVER` until it is empty.' >> added.log

cat > graphs.py <<'END'
from stepcraft import build_aag

procedures = build_aag(memory="ferrywire.db")
END

cat > langgraph.json <<'END'
{
  "dependencies": ["."],
  "graphs": {"procedures": "./graphs.py:procedures"},
  "http": {"app": "stepcraft.server.app:app", "middleware_order": "auth_first"},
  "env": ".env"
}
END

echo STEPCRAFT_MODEL=openai:assistant > .env
langgraph dev --no-browser --no-reload --port 2025 > server.log 2>&1 &
trap "kill $!" EXIT
until grep -q "Application started up" server.log; do sleep 1; done

python - <<'END'
from langgraph_sdk import get_sync_client

client = get_sync_client(url="http://127.0.0.1:2025")
goal = {"question": "rotate the key of the receiver billing", "resources": "a Ferrywire server"}

for part in client.runs.stream(
    None, "procedures", input=goal, context={"max_calls": 12}, stream_mode=["custom", "values"]
):
    if part.event == "custom" and part.data["type"] == "progress":
        if part.data["status"] == "finished":
            print(part.data["text"])
    elif part.event == "values":
        result = part.data

print(result["answer"])
print(result["usage"]["calls"], "model calls")
END
