"""Steps run and watched: the profile that a plan is made from, by hand or for `fit`."""
