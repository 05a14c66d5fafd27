"""The command line: `main` puts the commands together, `common` is what they share."""
