"""What a mistake on the command line must look like."""

PARTS = ("asked:", "allowed:", "to do:")


def refused(result, *words, code=2):
    """Three parts, this exit code, nothing of a raw exception."""
    assert result.returncode == code, result.stderr
    for part in PARTS:
        assert part in result.stderr
    for word in words:
        assert word in result.stderr
    for raw in ("terminate called", "what():", "Exception raised from", "frame #"):
        assert raw not in result.stderr
