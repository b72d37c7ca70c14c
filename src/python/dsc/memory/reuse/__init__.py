"""Gradients written into memory of saved tensors that nobody reads any more."""
