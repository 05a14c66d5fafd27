"""The commands of the command line, one module for each; `contrada.client.cli` puts them together."""
