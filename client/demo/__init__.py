"""The demo: storms over Florida, who is warned, and why.

`scenario` decides, `run` performs, `view` draws, with a map by `sketch`.
"""
