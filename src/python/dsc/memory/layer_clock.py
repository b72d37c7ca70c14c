"""Tells which layer of a profile a forward has reached."""

from .segments import current_node


class LayerClock:
    """Calls ``on_layer(index)`` as a forward passes the layers of a profile, by the names it gave them."""

    def __init__(self, model, names, on_layer):
        self._names = names
        self._on_layer = on_layer
        self._at = 0
        self._is_running = False
        self._hooks = []
        for name, module in model.named_modules():
            if next(module.children(), None) is None:
                label = name or type(module).__name__
                self._hooks.append(module.register_forward_pre_hook(self._passing(label)))
                self._hooks.append(module.register_forward_hook(self._passing(f"after {label}")))

    def begin(self):
        self._at = 0
        self._is_running = True

    def end(self):
        self._is_running = False

    def close(self):
        for hook in self._hooks:
            hook.remove()

    def _passing(self, label):
        def hook(*_):
            following = self._at + 1
            # A layer in which nothing ran has no place in the profile; a forward inside backward is a checkpoint's.
            if self._is_running and following < len(self._names) and self._names[following] == label:
                if current_node() is None:
                    self._at = following
                    self._on_layer(following)

        return hook
