"""Where in the data a run is, such that it can go on at the same batch in the same order."""
from collections.abc import Iterator

from . import random_state
from .errors import Error


def _generators(loader) -> list:
    """Generators that decide the order, apart from the global ones."""
    found = [getattr(loader, "generator", None), getattr(getattr(loader, "sampler", None), "generator", None)]
    return [g for i, g in enumerate(found) if g is not None and g not in found[:i]]


class Epochs:
    """Iterates over a loader epoch by epoch. A loader is anything that can be iterated again and again.

    The order of an epoch depends on the generators as they were when it began: these states are kept. To resume, the epoch
    is begun again from them, the batches already used are read and dropped, and the caller then restores the generators to
    where the checkpoint was.
    """

    def __init__(self, loader):
        if isinstance(loader, Iterator):
            raise Error(f"training over a {type(loader).__name__}, which can be read only once",
                        "loaders and lists, which can be iterated anew each epoch", "give a DataLoader or list(...)")
        self.loader, self.epoch, self.used = loader, 0, 0
        self._begin, self._resume = None, False

    def state_dict(self) -> dict:
        own = [g.get_state() for g in _generators(self.loader)]
        return {"epoch": self.epoch, "used": self.used, "begin": self._begin, "own": own}

    def load_state_dict(self, state: dict) -> None:
        self.epoch, self.used, self._begin, self._resume = state["epoch"], state["used"], state["begin"], True
        for generator, own in zip(_generators(self.loader), state["own"]):
            generator.set_state(own)

    def windows(self, size: int):
        """Lists of up to `size` batches until the epoch ends; the last list may be shorter."""
        sampler = getattr(self.loader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self.epoch)
        resumed, self._resume = self._resume and self._begin is not None, False
        if resumed:
            now = random_state.capture()
            random_state.restore(self._begin["global"])
            for generator, state in zip(_generators(self.loader), self._begin["own"]):
                generator.set_state(state)
        else:
            self.used = 0
            self._begin = {"global": random_state.capture(), "own": [g.get_state() for g in _generators(self.loader)]}
        batches = iter(self.loader)
        if resumed:
            for _ in range(self.used):
                next(batches, None)
            random_state.restore(now)
        window = []
        for batch in batches:
            window.append(batch)
            if len(window) == size:
                self.used += size
                yield window
                window = []
        if window:
            self.used += len(window)
            yield window
        if self.used == 0:
            raise Error("an epoch without a single batch", "loaders that give at least one batch", "check the data set and drop_last")
        self.epoch, self.used, self._begin = self.epoch + 1, 0, None
