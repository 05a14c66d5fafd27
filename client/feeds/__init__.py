"""Real formats as notifications: CAP alerts, GTFS-realtime and AIS. Readers do no I/O but for `sources`."""
