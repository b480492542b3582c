"""kopf, thin: events into the store, probes, start-up. No decisions here."""
