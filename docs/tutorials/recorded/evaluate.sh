# The questions of docs/tutorials/evaluate.md with a real model: 12 calls.
mkdir -p pages

cat > pages/deliveries.md <<'END'
# Deliveries

Ferrywire sends each webhook to every receiver that subscribes to its topic. A receiver has 10 seconds to answer.
A delivery that fails is tried again four times. After the fifth failure it moves to the dead letter queue.
END

cat > pages/dead-letters.md <<'END'
# Dead letters

Dead letters are kept for 30 days. `ferry dead list` shows them, and `ferry dead replay` sends them once more.
END

cat > pages/keys.md <<'END'
# Signing keys

Ferrywire signs each delivery with the key of its receiver. `ferry key add` adds a second key to a receiver.
`ferry key retire --oldest` removes the older one.
END

cat > pages/storage.md <<'END'
# Storage

Queues, receivers and keys are kept in one file, `ferry.db`. `ferry backup` copies it while the server runs.
Delivered webhooks are deleted after 7 days.
END

cat > questions.jsonl <<'END'
{"id": "replay", "question": "Which command sends dead letters once more?", "contains": ["ferry dead replay"]}
{"id": "time", "question": "How long does a receiver have to answer?", "contains": [["10 seconds", "ten seconds"]]}
{"id": "kept", "question": "How long are dead letters kept?", "contains": ["30 days"]}
{"id": "backup", "question": "Which command copies ferry.db while the server runs?", "contains": ["ferry backup"]}
{"id": "file", "question": "In which file does Ferrywire keep its queues?", "contains": ["ferry.db"]}
{"id": "older", "question": "Which command removes the older key of a receiver?", "contains": ["ferry key retire"]}
{"id": "both", "question": "Which commands replace a signing key?", "contains": ["ferry key add", "ferry key retire"]}
{"id": "lost", "question": "A partner was down for a week. How do we catch up?", "contains": ["ferry dead replay"]}
END

stepcraft eval run questions.jsonl --methods direct,rag --limit 6 --from corpus:pages/ \
  --model openai:assistant --into real/ --quiet
