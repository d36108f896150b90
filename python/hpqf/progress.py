"""The progress bar of training: step, loss, loss scale, skipped steps, samples per second."""
from tqdm import tqdm


class Progress:
    def __init__(self, wanted, loader, accumulate, epochs, steps, done):
        """wanted: True, False, or None: only when stderr is a terminal."""
        self._bar = tqdm(total=_total(loader, accumulate, epochs, steps), initial=done, unit="step", dynamic_ncols=True,
                         disable=None if wanted is None else not wanted)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._bar.close()

    def show(self, result, skipped):
        if not self._bar.disable:
            self._bar.set_postfix(loss=f"{result.loss:.4g}", scale=f"{result.loss_scale:g}", skipped=skipped,
                                  samples_s=f"{result.samples_per_second:.0f}", refresh=False)
        self._bar.update()


def _total(loader, accumulate, epochs, steps):
    """Optimizer steps, as far as they are known."""
    by_epochs = None
    if epochs is not None and hasattr(loader, "__len__"):
        try:
            by_epochs = epochs * -(-len(loader) // accumulate)
        except TypeError:   # DataLoader over an iterable data set has __len__ and cannot answer
            pass
    return min((n for n in (by_epochs, steps) if n is not None), default=None)
