"""Apple's GPUs as PyTorch's programs ask for them: there are none, so that they choose the CPU."""

from minigrad.cuda import device_count, empty_cache, is_available, manual_seed, synchronize

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
