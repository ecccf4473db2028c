# The question of docs/tutorials/check-answers.md with a real model: 12 calls at most, one thought after the other.
mkdir -p ferrywire

cat > ferrywire/deliveries.md <<'END'
# Deliveries

Ferrywire sends each webhook to every receiver that subscribes to its topic.
A receiver has 10 seconds to answer; any status from 200 to 299 counts as delivered.

## Retries

A delivery that fails is tried again after 1 minute, 5 minutes, 30 minutes and 2 hours.
After the fifth failure Ferrywire moves it to the dead letter queue.
`ferry dead list` shows the dead letters of a receiver, and `ferry dead replay` sends them once more.
END

cat > ferrywire/keys.md <<'END'
# Signing keys

Ferrywire signs each delivery with the key of its receiver.
`ferry key add RECEIVER` adds a second key, and `ferry key retire RECEIVER --oldest` removes the older one.
END

cat > ferrywire/storage.md <<'END'
# Storage

Ferrywire keeps queues, receivers and keys in one SQLite file, `ferry.db`.
Delivered webhooks are deleted after 7 days.
Dead letters are kept for 30 days.
END

stepcraft rat "How often does Ferrywire retry a failed delivery, and how long are dead letters kept?" \
  --from corpus:ferrywire/ --show-changes --model openai:assistant --set window=1 --set max_calls=12
