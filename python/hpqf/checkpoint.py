"""Checkpoint files: step-00000042.pt, written so that a run killed at any moment leaves the older ones whole."""
import os
import pathlib
import re
import zipfile

import torch

from .errors import Error

FORMAT, VERSION = "hpqf.checkpoint", 1
_PARTS = ("model", "optimizer", "scheduler", "loss_scale", "plan", "fallback", "counters", "position", "random")


def _numbered(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(p for p in folder.glob("step-*.pt") if re.fullmatch(r"step-\d+\.pt", p.name))


def prepare(folder) -> pathlib.Path:
    folder = pathlib.Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise Error(f"checkpoints in {folder}", "a folder that can be written", f"choose another one ({error.strerror})") from None
    return folder


def save(folder: pathlib.Path, step: int, parts: dict, keep: int) -> pathlib.Path:
    """Temporary file, fsync, rename; then all but the newest `keep` are removed."""
    path = folder / f"step-{step:08d}.pt"
    temporary = folder / f".{path.name}.{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            torch.save({"format": FORMAT, "version": VERSION, **parts}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY)   # the rename itself
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    for old in _numbered(folder)[:-keep]:
        old.unlink()
    return path


def _read(path: pathlib.Path) -> dict:
    """Checked as a whole before anything is used: every record's checksum, then the parts."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"the checksum of {damaged} is wrong")
        parts = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:   # zipfile, pickle and torch each have their own for damaged bytes
        raise Error(f"checkpoint {path}", "a whole file written by hpqf", f"it is damaged or foreign ({_first_line(error)})") from None
    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        raise Error(f"checkpoint {path}", f"files of format {FORMAT}", "it was written by something else")
    if parts["version"] > VERSION:
        raise Error(f"checkpoint {path} of version {parts['version']}", f"versions up to {VERSION}", "upgrade hpqf")
    missing = [part for part in _PARTS if part not in parts]
    if missing:
        raise Error(f"checkpoint {path}", f"the parts {', '.join(_PARTS)}", f"it lacks {', '.join(missing)}")
    return parts


def _first_line(error) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def load_newest(folder: pathlib.Path) -> dict:
    """The newest checkpoint. Damaged: Error that names the older ones which are whole, as going back is the user's choice."""
    found = _numbered(folder)
    if not found:
        raise Error(f"resume from {folder}", "a folder with step-*.pt checkpoints", "train without resume first")
    try:
        return _read(found[-1])
    except Error as error:
        whole = [p.name for p in found[:-1] if _is_whole(p)]
        todo = f"remove it to go on from {whole[-1]}" if whole else "no older one is whole: start anew"
        raise Error(error.asked, error.allowed, f"{error.todo}; {todo}") from None


def _is_whole(path) -> bool:
    try:
        _read(path)
        return True
    except Error:
        return False


def check_model(model, state: dict) -> None:
    """The saved tensors against the model's, before any of them is loaded."""
    own = {key: tuple(value.shape) for key, value in model.state_dict().items() if isinstance(value, torch.Tensor)}
    saved = {key: tuple(value.shape) for key, value in state.items() if isinstance(value, torch.Tensor)}
    for key in [*own, *(k for k in saved if k not in own)]:
        if own.get(key) != saved.get(key):
            raise Error(f"resume into another model: {key} is {saved.get(key, 'missing')} in the checkpoint",
                        f"{own.get(key, 'no such tensor')} as in this model", "resume with the model that was trained")
