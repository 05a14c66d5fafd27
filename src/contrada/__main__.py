"""`python -m contrada`: the command line, where `contrada` is not on the path."""

from contrada.client.cli.main import main

if __name__ == "__main__":
    main()
