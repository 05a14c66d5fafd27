"""Files that lie elsewhere, by URL.

`addresses` are paths and URLs as one kind of string; `object_store` reads and writes what a URL names, through
pyarrow; `local_cache` keeps what was fetched on this machine, up to so many bytes, to be mapped from there.
"""
