"""Activations as functions."""

from __future__ import annotations

from minigrad.functions import log_softmax, relu, sigmoid, softmax, tanh

__all__ = ["log_softmax", "relu", "sigmoid", "softmax", "tanh"]
