"""The one exception for a caller's mistakes."""


class Error(RuntimeError):
    """What was asked, what is allowed, what to do: always all three.

    Numeric trouble (overflow, NaN) is never an Error: such a step is skipped and its status says why.
    """

    def __init__(self, asked: str, allowed: str, todo: str):
        super().__init__(asked, allowed, todo)
        self.asked, self.allowed, self.todo = asked, allowed, todo

    def __str__(self) -> str:
        return f"asked:   {self.asked}\nallowed: {self.allowed}\nto do:   {self.todo}"


def from_torch(error: RuntimeError) -> RuntimeError:
    """The Error behind a RuntimeError: what is thrown inside an op passes through torch, which keeps the text alone."""
    text = str(error)
    if isinstance(error, Error) or not text.startswith("asked:   "):
        return error
    asked, _, rest = text[len("asked:   "):].partition("\nallowed: ")
    allowed, _, todo = rest.partition("\nto do:   ")
    return Error(asked, allowed, todo)
