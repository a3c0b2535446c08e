"""Recorded programs: what ``mg.compile`` is made of."""
