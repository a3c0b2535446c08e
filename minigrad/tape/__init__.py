"""The tape: what was computed from what, and how gradients run back over it.

These modules are the definition, in Python. An accelerator in C has the same names and is used
where it was built, unless the environment variable MINIGRAD_TAPE is "python". Read them in this
order: node, grad_mode, tensor_base, apply, slice_grad, engine, vjp.
"""
