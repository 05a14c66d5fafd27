"""Values, notifications and filters as bytes (`msgpack`) and as JSON (`json`)."""
