"""Commands for what comes from elsewhere: `contrada gateway`, `contrada token`, `contrada live`, `contrada feed`."""
