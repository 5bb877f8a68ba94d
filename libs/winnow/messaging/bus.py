"""The bus as a service sees it: one broker, its subscribers, its publisher, its dead letters.

bus = await Bus.open(settings, service="judge", telemetry=telemetry, dead_letters=store, claims=store, classify=storage_classify)
bus.subscribe(handler)            # a `records.Handler`
await bus.start()                 # consumes from here on
await bus.publisher.send([...])   # `records.Outgoing`
await bus.stop()
bus.checks()                      # `health.Check`s for readiness and liveness
"""
