"""What both jobs need: the session, paths, committing outputs, Arrow, indexes opened once per worker."""
