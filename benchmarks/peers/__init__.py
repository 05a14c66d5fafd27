"""Contrada beside what one would use instead, in one run, with the same answers.

`fences`: filters of a kind and a polygon, points as notifications, and the engines that run in this process. `node` and
`postgis` are engines of their own processes. `large` is a region that thousands of filters match. `sff` are the
workloads of SFF. `end_to_end` is a publisher and a subscriber through a broker. `__main__` runs them and prints one
table; a row in which Contrada is behind is printed as such.
"""
