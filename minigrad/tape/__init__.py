"""The tape: recorded operations, and the backward pass that computes gradients from them.

These modules define the tape in Python. An accelerator in C offers the same names. The accelerator
runs if it was built and the environment variable MINIGRAD_TAPE is not "python". Read the modules in
this order: node, grad_mode, tensor_base, apply, slice_grad, engine, vjp.
"""
