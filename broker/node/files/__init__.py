"""What a broker has on disk, each behind a thread: `recorder`, `durable_disk` (the journal), `index_loader`."""
