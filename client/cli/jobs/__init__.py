"""The commands that run on Spark, a module each: `build_index` and `replay`. `spark` is what they share."""
