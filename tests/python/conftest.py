import pytest
import torch


@pytest.fixture(autouse=True)
def same_random_numbers():
    torch.manual_seed(0)
    fast_path = torch.backends.mha.get_fastpath_enabled()
    yield
    assert torch.backends.mha.get_fastpath_enabled() == fast_path, "the fast path of attention was not put back"
