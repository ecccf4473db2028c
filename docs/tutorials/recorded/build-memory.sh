# The pages of docs/tutorials/build-memory.md read by a real model: 12 calls at most.
mkdir -p pages

cat > pages/keys.md <<'END'
# Rotate the signing key of a receiver

You need the name of the receiver and access to its settings.

1. Add a second key with `ferry key add RECEIVER`.
2. Give the receiver the new key, and restart it.
3. Send a test with `ferry send --test --show-reply RECEIVER`.
4. Remove the old key with `ferry key retire RECEIVER --oldest`.
END

cat > pages/receivers.md <<'END'
# Move a receiver to a new address

You need the name of the receiver and its new address.

1. Pause the receiver with `ferry pause RECEIVER`.
2. Set the address with `ferry set RECEIVER url=https://NEW`.
3. Resume the receiver with `ferry resume RECEIVER`.
4. Watch `ferry queue RECEIVER` until it is empty.
END

cat > pages/failures.md <<'END'
# When a delivery fails

Ferrywire tries a failed delivery again four times, then moves it to the dead letter queue.
Dead letters are kept for 30 days. They can be delivered after all once the receiver is well:
`ferry dead list RECEIVER` shows them, `ferry dead replay RECEIVER` sends them, and
`ferry queue RECEIVER` tells when the last one is through.
END

stepcraft memory build pages/ --memory real.db --model openai:assistant --max-calls 12
stepcraft memory list --memory real.db
stepcraft memory show "$(stepcraft memory search "deliver dead letters" --memory real.db | cut -c 8-15 | head -1)" \
  --memory real.db
