"""A plan carried out: tensors and parameters that leave the device and come back."""
