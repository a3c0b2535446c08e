"""Helpers for tests: comparison of tensors, random tensors, and a check of a user's Function."""

from minigrad.testing.comparison import assert_close, make_tensor
from minigrad.testing.function_checks import check_function

__all__ = ["assert_close", "check_function", "make_tensor"]
