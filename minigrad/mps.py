"""``torch.mps`` for PyTorch programs: there are no Apple GPUs, so programs choose the CPU."""

from minigrad.cuda import device_count, empty_cache, is_available, manual_seed, synchronize

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
