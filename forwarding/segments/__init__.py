"""A forwarding table in segments on disk: `segmented_table` is the face, `index_directory` the files."""
