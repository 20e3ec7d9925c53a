"""The parts of tools/generate.py, one for each kind of output."""
