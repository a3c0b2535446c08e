"""Classes Module, the base of layers, and Parameter, a tensor that is trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeVar

from minigrad import functions as f
from minigrad._tensor import Tensor
from minigrad._tensor.inplace import replace
from minigrad.functions.creation import foreign_values, require_grad, tensor
from minigrad.functions.grad_modes import no_grad
from minigrad.runtime.devices import destination, on_cpu
from minigrad.runtime.dtypes import as_dtype
from minigrad.runtime.lazy_numpy import is_numpys
from minigrad.runtime.native import call, kernels
from minigrad.tape.grad_mode import mode
from minigrad.tape.hooks import Removable
from minigrad.tape.tensor_base import TensorBase

__all__ = ["Module", "Parameter"]


class Parameter(Tensor):
    """A leaf tensor that a Module finds among its attributes. It requires grad by default.

    A parameter shares the memory of the tensor that it is made from. Operations on it return plain
    tensors.

    >>> import minigrad as mg
    >>> p = mg.nn.Parameter(mg.zeros(2))
    >>> p
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    >>> isinstance(p, mg.Tensor), type(p + 1) is mg.Tensor
    (True, True)

    Users may set their own attributes. As in PyTorch a pickle and a copy keep them, and a deepcopy
    does not.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """A parameter on the memory of ``data``. Data that is no tensor is copied."""
        source: Any = data if isinstance(data, TensorBase) else tensor(() if data is None else data)
        if not source._h.contiguous:
            source = f.clone(source)
        self = object.__new__(cls)
        self._h = call(kernels.view_alias, source._h)
        self._edge = self._shape = self.grad = None
        require_grad(self, requires_grad)
        return self

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __copy__(self) -> Parameter:
        """A parameter on the same memory."""
        copy = Parameter.__new__(type(self), self.detach(), self.requires_grad)
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A parameter with its own memory and, as in PyTorch, without ``grad``."""
        copy = Parameter.__new__(type(self), self.detach().clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        values = self.detach().numpy().copy()
        return _rebuild, (values, self.requires_grad, type(self)), self.__dict__ or None


def _rebuild(values: Any, requires_grad: bool, cls: type[Parameter] = Parameter) -> Parameter:
    return Parameter.__new__(cls, tensor(values), requires_grad)


class Uninitialized:
    """Marker class of parameters and buffers that have no shape before the first call."""

    __slots__ = ()


class _Hook(NamedTuple):
    """A hook: a function that is called before or after a forward."""

    function: Callable[..., Any]
    with_kwargs: bool
    always: bool = False


class _Hooked:
    """A module's forward together with its hooks.

    It is an attribute of the module while there are hooks. It and the module are a reference cycle,
    which ends when the last hook is removed.
    """

    def __init__(self, module: Module, forward: Callable[..., Any] | None) -> None:
        self.module = module
        self.forward = forward  # set if forward is an attribute of the instance
        self.before: list[_Hook] = []
        self.after: list[_Hook] = []
        self.backward_before: list[_Hook] = []
        self.backward: list[_Hook] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        called: set[int] = set()  # positions of the hooks after forward that were called
        output = None
        try:
            args, kwargs = self._prepared(args, kwargs)
            watched = self._watched()
            if watched is not None:
                args = watched.inputs(args)
            forward = self.forward or type(self.module).forward.__get__(self.module)
            output = forward(*args, **kwargs)
            for place, hook in enumerate(tuple(self.after)):
                called.add(place)
                changed = self._shown(hook, args, kwargs, output)
                output = output if changed is None else changed
            if watched is not None:
                output = watched.outputs(output)
        except BaseException:
            for place, hook in enumerate(tuple(self.after)):
                if hook.always and place not in called:
                    self._show_failure(hook, args, kwargs, output)
            raise
        return output

    def _show_failure(self, hook: _Hook, args: Any, kwargs: Any, output: Any) -> None:
        """Call a hook after an error, which goes on whatever the hook does."""
        try:
            self._shown(hook, args, kwargs, output)
        except Exception as error:
            warnings.warn(
                f"[{type(self.module).__name__}] a forward hook with always_call raised {error!r} "
                "after another error, which goes on",
                stacklevel=4,
            )

    def with_those(self, of: _Hooked) -> _Hooked:
        """The same forward with the hooks of ``of`` before its own."""
        both = _Hooked(self.module, self.forward)
        for when in ("before", "after", "backward_before", "backward"):
            setattr(both, when, getattr(of, when) + getattr(self, when))
        return both

    def _watched(self) -> Any:
        """The object that calls the backward hooks of this call, or None if there are none."""
        if not (self.backward_before or self.backward) or not mode.enabled:
            return None
        from minigrad.nn.backward_hooks import Watched

        return Watched(self.module, self.backward_before, self.backward)

    def _prepared(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments after the hooks before forward."""
        for hook in tuple(self.before):
            if hook.with_kwargs:
                changed = hook.function(self.module, args, kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise TypeError(
                        f"[{type(self.module).__name__}] a pre-hook with_kwargs returns None or a "
                        f"pair of arguments and keyword arguments, not {changed!r}"
                    )
                args, kwargs = changed
            else:
                changed = hook.function(self.module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _shown(self, hook: _Hook, args: Any, kwargs: Any, output: Any) -> Any:
        """Call a hook after forward."""
        if hook.with_kwargs:
            return hook.function(self.module, args, kwargs, output)
        return hook.function(self.module, args, output)

    def release(self) -> None:
        """Restore the module if there are no hooks any more."""
        held = self.module.__dict__
        changes.count += 1
        some = self.before or self.after or self.backward_before or self.backward
        if some or held.get("forward") is not self:
            return
        if self.forward is None:
            del held["forward"]
        else:
            held["forward"] = self.forward


class _RemovableHook(Removable):
    """Handle that removes a hook of a module. The last one also restores the module's forward."""

    __slots__ = ("_of",)

    def __init__(self, hooks: list[Any], hook: Any, of: _Hooked) -> None:
        super().__init__(hooks, hook)
        self._of: _Hooked | None = of

    def remove(self) -> None:
        """Remove the hook."""
        of, self._of = self._of, None
        super().remove()
        if of is not None:
            of.release()

    __call__ = remove


class LoadResult(NamedTuple):
    """The missing and unexpected names of :meth:`Module.load_state_dict`."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def _copy_all(values: Mapping[str, Any], into: Mapping[str, Any]) -> None:
    """Copy values into the tensors with the same names."""
    with no_grad():
        for name, value in values.items():
            into[name].copy_(value)


_M = TypeVar("_M", bound="Module")


class _Changes:
    """How often attributes of modules were set or deleted, and how many calls replace some now."""

    def __init__(self) -> None:
        self.count = 0
        self.replaced = 0


changes = _Changes()


class Module:
    """Base of layers and models. Parameters, buffers and submodules are attributes.

    A subclass sets them in ``__init__`` and computes in ``forward``. A call of the module calls
    ``forward``. Parameters are attributes of type :class:`Parameter`, submodules of type Module.
    Buffers are the tensors given to :meth:`register_buffer`. Each kind keeps the order in which it
    was set.

    >>> import minigrad as mg
    >>> class Scale(mg.nn.Module):
    ...     def __init__(self):
    ...         self.factor = mg.nn.Parameter(mg.tensor(3.0))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> model = Scale()
    >>> model(mg.tensor(2.0)).item()
    6.0
    >>> [name for name, p in model.named_parameters()]
    ['factor']
    """

    training: bool = True
    _buffers: Mapping[str, bool] = {}  # name of each buffer: True if the state has it

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute.

        Raises TypeError for a value that would silently replace a parameter, a submodule or a
        buffer.
        """
        held = self.__dict__.get(name)
        if isinstance(held, (Parameter, Module)) and value is not None:
            parameter = isinstance(held, Parameter)
            if not isinstance(value, Parameter if parameter else (Module, Parameter)):
                what = "parameter" if parameter else "child module"
                raise TypeError(
                    f"[{type(self).__name__}] cannot assign {type(value).__name__!r} as {what} "
                    f"{name!r} ({'Parameter' if parameter else 'Module'} or None expected)"
                )
        elif (
            name in self._buffers
            and name in self.__dict__
            and not (value is None or isinstance(value, (TensorBase, Module)))
        ):
            raise TypeError(
                f"[{type(self).__name__}] cannot assign {type(value).__name__!r} as buffer "
                f"{name!r} (Tensor or None expected)"
            )
        super().__setattr__(name, value)
        changes.count += 1

    @property
    def _modules(self) -> MutableMapping[str, Any]:
        """PyTorch's dict of submodules. Writes to the dict set attributes."""
        from minigrad.nn.part_dicts import Held

        return Held(self, Module)

    @property
    def _parameters(self) -> MutableMapping[str, Any]:
        """PyTorch's dict of the module's own parameters. Writes to the dict set attributes."""
        from minigrad.nn.part_dicts import Held

        return Held(self, Parameter)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's output. Every subclass defines this method."""
        raise NotImplementedError(f"[{type(self).__name__}] has no forward method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call forward."""
        return self.forward(*args, **kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Removable:
        """Call ``hook(module, args, output)`` after forward.

        A result other than None replaces the output. With ``with_kwargs`` the call is
        ``hook(module, args, kwargs, output)``. ``prepend`` puts the hook before the present ones.
        With ``always_call`` the hook is called even if forward or another hook raised an error. It
        gets the output, or None if there is none yet. The hook's own error is then a warning.
        Returns a handle: ``handle.remove()`` removes the hook, as does the end of a with statement.
        Raises TypeError unless the hook is a function.

        >>> import minigrad as mg
        >>> layer = mg.nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
        >>> layer(mg.tensor(2.0)).item()
        3.0
        >>> handle.remove()
        """
        return self._hooked(hook, "after", prepend, with_kwargs, always_call)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Removable:
        """Call ``hook(module, args)`` before forward.

        A result other than None replaces the arguments. With ``with_kwargs`` the call is
        ``hook(module, args, kwargs)``, which returns None or a pair of both. ``prepend`` puts the
        hook before the present ones.

        >>> import minigrad as mg
        >>> layer = mg.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: -args[0])
        >>> layer(mg.tensor(-2.0)).item()
        2.0
        >>> handle.remove()
        """
        return self._hooked(hook, "before", prepend, with_kwargs)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Removable:
        """Call ``hook(module, grad_output)`` in backward when the outputs have their gradients.

        A result other than None replaces these gradients. ``grad_output`` is a tuple, with None for
        outputs without a gradient.
        """
        return self._hooked(hook, "backward_before", prepend, False)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Removable:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs have their gradients.

        The inputs are the positional arguments. A result other than None replaces their gradients.
        Both gradients are tuples, with None for a tensor without a gradient. If no argument
        requires grad, the hook is called when the outputs have their gradients.

        >>> import minigrad as mg
        >>> layer = mg.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda module, g, out: print(out[0].shape))
        >>> layer(mg.ones(3, 2)).sum().backward()
        (3, 1)
        """
        return self._hooked(hook, "backward", prepend, False)

    register_backward_hook = register_full_backward_hook

    def _hooked(
        self, function: Any, when: str, prepend: bool, with_kwargs: bool, always: bool = False
    ) -> Removable:
        if not callable(function):
            raise TypeError(
                f"[{type(self).__name__}] a hook is a function, not {type(function).__name__}"
            )
        # An attribute hides the method __call__, so that modules without hooks are called no
        # slower.
        forward = self.__dict__.get("forward")
        if type(forward) is not _Hooked:
            forward = self.__dict__["forward"] = _Hooked(self, forward)
        hooks: list[_Hook] = getattr(forward, when)
        hook = _Hook(function, bool(with_kwargs), bool(always))
        hooks.insert(0 if prepend else len(hooks), hook)
        changes.count += 1
        return _RemovableHook(hooks, hook, forward)

    # ---- what it is made of ----

    def __delattr__(self, name: str) -> None:
        """Delete an attribute, and forget that it was a buffer."""
        super().__delattr__(name)
        changes.count += 1
        if name in self._buffers:
            self._buffers = {k: kept for k, kept in self._buffers.items() if k != name}

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set a parameter as the attribute ``name``. None means that there is no parameter.

        Raises KeyError for a name that is empty, has a dot, or is in use by anything but a
        parameter.
        """
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"[register_parameter] {name!r} is a {type(param).__name__}, not a Parameter: "
                "wrap it in mg.nn.Parameter"
            )
        self._check_name("register_parameter", name, Parameter)
        setattr(self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Set a module as the attribute ``name``. None means that there is no module.

        Raises KeyError for a name that is empty, has a dot, or is in use by anything but a module.

        >>> import minigrad as mg
        >>> net = mg.nn.Module()
        >>> net.add_module("first", mg.nn.ReLU())
        >>> [name for name, child in net.named_children()]
        ['first']
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"[add_module] {name!r} is a {type(module).__name__}, not a Module")
        self._check_name("add_module", name, Module)
        setattr(self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """:meth:`add_module` under another name."""
        self.add_module(name, module)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set a tensor that is no parameter as the attribute ``name``.

        :meth:`to` converts the buffer. A persistent buffer is part of the state. Raises KeyError
        for a name that is empty, has a dot, or is in use by anything but a buffer.
        """
        if tensor is not None and not isinstance(tensor, TensorBase):
            kind = type(tensor).__name__
            raise TypeError(f"[register_buffer] {name!r} is a {kind}, not a Tensor")
        self._check_name("register_buffer", name)
        self._buffers = {**self._buffers, name: persistent}
        setattr(self, name, tensor)

    def _check_name(self, op: str, name: str, kind: type | None = None) -> None:
        """Raise a KeyError, as in PyTorch, if an attribute of another kind has this name.

        The kind is a class, or None for buffers. An attribute that is None has no kind yet.
        """
        if not isinstance(name, str):
            raise TypeError(f"[{op}] a name must be a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"[{op}] {name!r} is no name: it is empty or holds a dot")
        if name in self._buffers:
            free = kind is None
        elif kind is None:
            free = not hasattr(self, name)
        else:
            held = self.__dict__.get(name, ...)
            free = held is None or isinstance(held, kind) or not hasattr(self, name)
        if not free:
            raise KeyError(f"[{op}] {type(self).__name__} has an attribute {name!r} already")

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen: set[int] = set()
        for name, value in self.__dict__.items():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (child for _, child in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all modules below it, with dotted names.

        Each comes once if ``remove_duplicate``. Modules in ``memo`` are left out. Every returned
        module is added to ``memo``.
        """
        if not remove_duplicate:
            for above, module in self._below(prefix and f"{prefix}.", ()):
                yield above[:-1], module
            return
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all modules below it, each once if ``remove_duplicate``."""
        every = self.named_modules(remove_duplicate=remove_duplicate)
        return (module for _, module in every)

    def _named_tensors(
        self,
        chosen: Callable[[Module, str, Any], bool],
        prefix: str,
        recurse: bool,
        remove_duplicate: bool,
    ) -> Iterator[Any]:
        seen: set[int] = set()
        below = self.named_modules(None, prefix, remove_duplicate)
        modules = below if recurse else ((prefix, self),)
        for above, module in modules:
            for name, value in module.__dict__.items():
                if chosen(module, name, value) and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield (f"{above}.{name}" if above else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and, if ``recurse``, all below it, with dotted names.

        Each comes once, or without ``remove_duplicate`` under every name that it has.
        """
        chosen = lambda _, __, value: isinstance(value, Parameter)  # noqa: E731
        return self._named_tensors(chosen, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, if ``recurse``, all below it, each once."""
        return (p for _, p in self.named_parameters("", recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and, if ``recurse``, all below it, with dotted names.

        Each comes once if ``remove_duplicate``.
        """

        def chosen(module: Module, name: str, value: Any) -> bool:
            held = isinstance(value, TensorBase) and not isinstance(value, Parameter)
            return held and name in module._buffers

        return self._named_tensors(chosen, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, if ``recurse``, all below it, each once."""
        return (b for _, b in self.named_buffers("", recurse))

    def get_submodule(self, target: str) -> Module:
        """The module below this one with a dotted name. The name "" means this module.

        Raises AttributeError if there is none.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            module = module._named("get_submodule", name, Module, target)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with this dotted name. Raises AttributeError if there is none."""
        above, _, name = target.rpartition(".")
        found: Parameter = self.get_submodule(above)._named(
            "get_parameter", name, Parameter, target
        )
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted name. Raises AttributeError if there is none."""
        above, _, name = target.rpartition(".")
        owner = self.get_submodule(above)
        found: Tensor = owner._named("get_buffer", name, TensorBase, target)
        if name not in owner._buffers:
            raise AttributeError(f"[get_buffer] {target!r} is no buffer of {type(self).__name__}")
        return found

    def _named(self, op: str, name: str, kind: type, target: str) -> Any:
        found = self.__dict__.get(name)
        if isinstance(found, kind):
            return found
        raise AttributeError(
            f"[{op}] there is no {op.removeprefix('get_')} {target!r}: {type(self).__name__} has "
            f"none that is named {name!r}"
        )

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module with this dotted name.

        Raises AttributeError if there is no parent module, or, if strict, no module to replace.
        """
        if not isinstance(module, Module):
            raise TypeError(
                f"[set_submodule] {target!r} is a {type(module).__name__}, not a Module"
            )
        above, _, name = target.rpartition(".")
        if not name:
            raise ValueError("[set_submodule] the name is empty: a module cannot replace itself")
        owner = self.get_submodule(above)
        if strict:
            owner._named("get_submodule", name, Module, target)
        setattr(owner, name, module)

    # ---- what is done to all of it ----

    def apply(self: _M, fn: Callable[[Module], Any]) -> _M:
        """Call ``fn`` with every module below this one, and then with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self: _M, mode: bool = True) -> _M:
        """Set the training mode of this module and all modules below it.

        Raises TypeError unless ``mode`` is True or False.
        """
        if not (isinstance(mode, bool) or is_numpys("bool_", mode)):
            raise TypeError(f"[train] mode must be True or False, not {type(mode).__name__}")
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self: _M) -> _M:
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: _M, requires_grad: bool = True) -> _M:
        """Set whether all parameters require gradients."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to 0."""
        for p in self.parameters():
            if p.grad is not None:
                p.grad = None if set_to_none else p.grad.detach().zero_()

    def to(
        self: _M,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> _M:
        """Cast all float parameters, their gradients and float buffers to another float dtype.

        Parameters stay the same objects, so that an optimizer that holds them keeps working. A
        device, which is the CPU, may stand before the dtype or in its place. The other flags are
        PyTorch's and change nothing.

        Raises TypeError for other dtypes, RuntimeError for another device.
        """
        target = destination("Module.to", args, device, dtype)
        if target is None:
            return self
        kind = as_dtype(target)
        if not kind.is_floating_point:
            raise TypeError(f"[Module.to] parameters are floats, not {kind.name}")
        if kind.is_storage:
            raise TypeError(
                f"[Module.to] {kind.name} is for storage: minigrad computes and trains in float32 "
                "and float64; to store parameters in halves, convert those of state_dict()"
            )
        for values in (self.parameters(), self.buffers()):
            for value in values:
                if value.dtype.is_floating_point and value.dtype is not kind:
                    replace(value, call(kernels.cast, value._h, kind.code))
                    if value.grad is not None:
                        value.grad = value.grad.detach().to(kind)
        return self

    def cpu(self: _M) -> _M:
        """The module itself: there is no other device."""
        return self

    def cuda(self: _M, device: Any = None) -> _M:
        """Raise a RuntimeError: minigrad computes on the CPU."""
        on_cpu("cuda" if device is None else f"cuda:{device}")
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the calls of this module: the arguments are those of :func:`minigrad.compile`.

        The module stays the same object, with the same names in its state. Hooks of the module run
        in Python at each call.

        >>> import minigrad as mg
        >>> layer = mg.nn.Linear(2, 1)
        >>> layer.compile()
        >>> layer(mg.ones(3, 2)).shape
        (3, 1)
        """
        from minigrad.compiler import compile as compiled

        held = self.__dict__.get("forward")
        own = held.forward if type(held) is _Hooked else held
        if own is None:
            own = type(self).forward.__get__(self)
        made = compiled(getattr(own, "function", own), *args, **kwargs)
        if made is own:
            return
        if type(held) is _Hooked:
            held.forward = made
        else:
            self.__dict__["forward"] = made
        changes.count += 1

    def share_memory(self: _M) -> _M:
        """The module itself: threads share all memory, and processes none."""
        return self

    def float(self: _M) -> _M:
        """``to(mg.float32)``."""
        return self.to("float32")

    def double(self: _M) -> _M:
        """``to(mg.float64)``."""
        return self.to("float64")

    def half(self: _M) -> _M:
        """Raise a TypeError: halves are for storage only.

        Store a state in halves by ``{k: v.half() for k, v in state_dict().items()}``.
        :meth:`load_state_dict` accepts such a state.
        """
        return self.to("float16")

    def bfloat16(self: _M) -> _M:
        """Raise a TypeError, as :meth:`half` does."""
        return self.to("bfloat16")

    # ---- its state ----

    def get_extra_state(self) -> Any:
        """Return further state of this module. Only classes with such state define this method.

        It is saved as "_extra_state" under the module's name. Loading a state passes it to
        :meth:`set_extra_state`.

        >>> import minigrad as mg
        >>> class Counting(mg.nn.Module):
        ...     seen = 0
        ...     def get_extra_state(self):
        ...         return self.seen
        ...     def set_extra_state(self, state):
        ...         self.seen = state
        >>> a, b = Counting(), Counting()
        >>> a.seen = 5
        >>> a.state_dict()
        {'_extra_state': 5}
        >>> b.load_state_dict(a.state_dict()).missing_keys, b.seen
        ([], 5)
        """
        raise NotImplementedError(f"[{type(self).__name__}] has no get_extra_state method")

    def set_extra_state(self, state: Any) -> None:
        """Load the result of :meth:`get_extra_state`.

        It is called after all tensors were loaded.
        """
        raise NotImplementedError(f"[{type(self).__name__}] has no set_extra_state method")

    def _owners(self, prefix: str = "") -> Iterator[tuple[str, Module, str]]:
        """For each dotted name of a parameter or persistent buffer: its module, its name there."""
        for above, module in self._below(prefix, ()):
            for name, value in module.__dict__.items():
                if isinstance(value, Parameter) or (
                    value is not None
                    and module._buffers.get(name)
                    and not isinstance(value, Module)
                ):
                    yield above + name, module, name

    def _state(self) -> Iterator[tuple[str, Any]]:
        """Parameters and persistent buffers under all of their dotted names."""
        return ((name, module.__dict__[own]) for name, module, own in self._owners())

    def _below(self, prefix: str, above: tuple[Module, ...]) -> Iterator[tuple[str, Module]]:
        """This module and all modules below it under all of their names, each followed by a dot."""
        yield prefix, self
        for name, child in self.__dict__.items():
            if isinstance(child, Module) and child is not self and child not in above:
                yield from child._below(f"{prefix}{name}.", (*above, self))

    def _extra_states(self, method: str, prefix: str = "") -> dict[str, Module]:
        """The modules that define this method, by the names of their extra states."""
        base = getattr(Module, method)
        return {
            f"{above}_extra_state": module
            for above, module in self._below(prefix, ())
            if getattr(type(module), method) is not base
        }

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Removable:
        """Call ``hook(module, prefix, keep_vars)`` before the state of this module is read."""
        return self._state_hooked("state_before", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Removable:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after the state was read.

        The dict then has the state of this module and all modules below it. The hook may change the
        dict.
        """
        return self._state_hooked("state_after", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Removable:
        """Call a hook before a state is loaded.

        The call is ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``. The hook may change the dict, which is a copy, and add to
        the lists.
        """
        return self._state_hooked("load_before", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Removable:
        """Call ``hook(module, incompatible_keys)`` after a state was loaded.

        The hook may change the lists ``missing_keys`` and ``unexpected_keys``. A name that it
        removes is no error. With such a hook values are copied even if names are missing.
        """
        return self._state_hooked("load_after", hook)

    def _state_hooked(self, when: str, hook: Any) -> Removable:
        if not callable(hook):
            raise TypeError(
                f"[{type(self).__name__}] a hook is a function, not {type(hook).__name__}"
            )
        hooks = self.__dict__.setdefault("_state_hooks", {}).setdefault(when, [])
        hooks.append(hook)
        return Removable(hooks, hook)

    def _call_state_hooks(
        self, when: str, prefix: str, arguments: Callable[[str], tuple[Any, ...]]
    ) -> bool:
        """Call the state hooks of all modules, and return True if there were any.

        Hooks "before" are called from the top module down.
        """
        found = [
            (above, module, hook)
            for above, module in self._below(prefix, ())
            for hook in module.__dict__.get("_state_hooks", {}).get(when, ())
        ]
        for above, module, hook in found if when.endswith("before") else reversed(found):
            hook(module, *arguments(above))
        return bool(found)

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """A dict of parameters and persistent buffers by dotted name, detached, on the same memory.

        Extra states come last. Entries are added to ``destination``, if given, and ``prefix`` is
        put before their names. With ``keep_vars`` the tensors are not detached.
        """
        self._call_state_hooks("state_before", prefix, lambda above: (above, keep_vars))
        state = {} if destination is None else destination
        for name, module, own in self._owners(prefix):
            value = module.__dict__[own]
            kept = keep_vars or isinstance(value, Uninitialized)
            state[name] = value if kept else value.detach()
        for name, module in self._extra_states("get_extra_state", prefix).items():
            state[name] = module.get_extra_state()
        self._call_state_hooks("state_after", prefix, lambda above: (state, above, {}))
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadResult:
        """Copy values (tensors or arrays, also PyTorch's) into parameters and buffers by name.

        Nothing is copied unless everything fits. Extra states are loaded afterwards. If a
        ``set_extra_state`` raises an error, parameters and buffers are restored, but modules keep
        the extra states that they have loaded. With ``assign`` nothing is copied: the values
        themselves become the buffers and the parameters, which require grad as the old ones did.
        Returns the missing and the unexpected names.

        Raises ValueError for shapes that differ, for memory that cannot be written and, if strict,
        for missing or unexpected names. Raises TypeError for values that are no arrays.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"[load_state_dict] expected a dict of tensors, not {type(state_dict).__name__}"
            )
        state, result, wrong = dict(state_dict), LoadResult([], []), list[str]()
        own = dict(self._state())
        self._call_state_hooks(
            "load_before", "", lambda above: (state, above, {}, strict, *result, wrong)
        )
        extra = self._extra_states("set_extra_state")
        result.missing_keys.extend(name for name in (*own, *extra) if name not in state)
        result.unexpected_keys.extend(
            name for name in state if name not in own and name not in extra
        )
        given = {
            name: foreign_values(f"load_state_dict: {name}", value)
            for name, value in state.items()
            if name in own and not isinstance(value, Uninitialized)
        }
        wrong += [
            f"{name} has shape {value.shape}, the module's {own[name].shape}"
            for name, value in given.items()
            if not isinstance(own[name], Uninitialized) and value.shape != own[name].shape
        ]
        relaxed = any(
            "load_after" in module.__dict__.get("_state_hooks", ()) for module in self.modules()
        )
        if wrong or not relaxed:
            self._check_state(wrong, result, strict)
        if assign:
            self._assign({name: state[name] for name in given}, given)
            for name in extra.keys() & state.keys():
                extra[name].set_extra_state(state[name])
        else:
            self._copy_state(given, own, {n: m for n, m in extra.items() if n in state}, state)
        if relaxed:
            self._call_state_hooks("load_after", "", lambda _: (result,))
            self._check_state([], result, strict)
        return result

    def _check_state(self, wrong: list[str], result: LoadResult, strict: bool) -> None:
        """Raise a ValueError that lists all that does not fit."""
        if strict and result.missing_keys:
            wrong.append(f"missing: {', '.join(result.missing_keys)}")
        if strict and result.unexpected_keys:
            wrong.append(f"unexpected: {', '.join(map(str, result.unexpected_keys))}")
        if wrong:
            raise ValueError(
                f"[load_state_dict] the state does not fit {type(self).__name__}: "
                + "; ".join(wrong)
            )

    def _assign(self, values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Set values as the parameters and buffers with these names."""
        for name, module, own in list(self._owners()):
            if name not in given:
                continue
            held: Any = module.__dict__[own]
            value: Any = values[name]
            value = value if isinstance(value, TensorBase) else given[name]
            if isinstance(held, Parameter):
                requires_grad = held.requires_grad
                value = (
                    value
                    if isinstance(value, Parameter)
                    else Parameter(value.detach(), requires_grad)
                )
                value.requires_grad_(requires_grad)
            else:
                value = value.detach()
            setattr(module, own, value)

    def _copy_state(
        self,
        given: dict[str, Any],
        own: Mapping[str, Any],
        extra: Mapping[str, Module],
        state: Mapping[str, Any],
    ) -> None:
        """Copy values into parameters and buffers, and load extra states."""
        for name, value in given.items():
            if isinstance(own[name], Uninitialized):
                own[name].materialize(value.shape)
            call(kernels.check_writable, own[name]._h)
        # Values in this module's own memory are copied before anything is written.
        memory = {x._h.buffer for x in own.values()}
        given = {
            name: value.clone() if value._h.buffer in memory else value
            for name, value in given.items()
        }
        before = {name: own[name].detach().clone() for name in given} if extra else {}
        try:
            _copy_all(given, own)
            for name, module in extra.items():
                module.set_extra_state(state[name])
        except BaseException:
            _copy_all(before, own)
            raise

    # ---- how it is shown ----

    def extra_repr(self) -> str:
        """The text between the parentheses of the repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in self._shown()]
        if not lines and "\n" not in extra:
            return f"{type(self).__name__}({extra})"
        body = [*extra.split("\n"), *lines] if extra else lines
        return f"{type(self).__name__}(\n  " + "\n  ".join(body) + "\n)"

    def _shown(self) -> list[tuple[str, Module]]:
        return [(name, value) for name, value in self.__dict__.items() if isinstance(value, Module)]
