"""Where jobs read and write: directories that all machines see, or places in an object store.

`shared_files` are files by address, for tasks as for the driver, and `listing` finds them; `places` is how what a job
writes becomes valid, in a directory by `commit`.
"""
