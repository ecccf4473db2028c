# The report of docs/tutorials/traced-report.md with a real model: 6 calls at most.
mkdir -p ferrywire incidents

cat > ferrywire/deliveries.md <<'END'
# Deliveries

A receiver has 10 seconds to answer; any status from 200 to 299 counts as delivered.

## Retries

A delivery that fails is tried again after 1 minute, 5 minutes, 30 minutes and 2 hours.
After the fifth failure Ferrywire moves it to the dead letter queue.

## Order

Deliveries to one receiver keep the order in which they arrived.
While one of them is being retried, the ones behind it wait.
END

cat > ferrywire/keys.md <<'END'
# Signing keys

Ferrywire signs each delivery with the key of its receiver.

## Rotation

`ferry key add RECEIVER` adds a second key.
`ferry key retire RECEIVER --oldest` removes the older one.
END

cat > incidents/march.md <<'END'
# Incident in March

A partner changed its address, and 1,200 deliveries to the receiver `billing` failed.
They were in the dead letter queue when the engineer on duty came back on Monday.
`ferry dead replay billing` delivered all of them within 4 minutes.
END

stepcraft rpg 'What should an operator know about "failed deliveries", "key rotation" and "order of deliveries"?' \
  --from corpus:ferrywire/ --from corpus:incidents/ --citations inline --quiet --model openai:assistant
