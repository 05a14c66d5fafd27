"""Jobs on Spark: `build` makes an index of many subscriptions, `replay` runs past events against one."""
