"""The format of plans and profiles, and what a model must be for a plan."""
