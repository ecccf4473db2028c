# The goal of docs/tutorials/first-procedure.md with a real model: 12 calls at most.
cat > procedures.jsonl <<'END'
{"output": "rotate the signing key of a receiver", "input": "a Ferrywire server, a receiver", "steps": ["Add a second key with `ferry key add RECEIVER`; Ferrywire then signs each delivery with both keys.", "Give the receiver the new key, and restart it.", "Run `ferry send --test RECEIVER` and check that it prints `verified`.", "Retire the old key with `ferry key retire RECEIVER --oldest`."]}
{"output": "move a receiver to a new address", "input": "a Ferrywire server, a receiver, the new address", "steps": ["Pause the receiver with `ferry pause RECEIVER`; its deliveries wait in the queue.", "Set the new address with `ferry set RECEIVER url=https://NEW`.", "Run `ferry send --test RECEIVER` and check that it prints `verified`.", "Resume the receiver with `ferry resume RECEIVER`, and watch `ferry queue RECEIVER` until it is empty."]}
{"output": "upgrade a Ferrywire server", "input": "a Ferrywire server, a backup folder", "steps": ["Write a backup with `ferry backup FOLDER`.", "Stop the server with `ferry stop`; senders are answered with 503 and try again.", "Install the new version, and run `ferry migrate`.", "Start the server with `ferry start`, and check with `ferry status` that all receivers are `up`."]}
END
stepcraft memory import procedures.jsonl --memory ferrywire.db
stepcraft aag "move a receiver to a new address and rotate its signing key" \
  --using "a Ferrywire server, a receiver, the new address" --memory ferrywire.db \
  --model openai:assistant --set max_calls=12
