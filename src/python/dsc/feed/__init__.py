"""Shuffled samples from a dsc feed on this machine: one shared arena, one message per batch."""
