"""The parts of scripts/faults.py: a place that commands run in, the commands, and one file for each kind of fault."""
