"""The C tape under the names of the modules of minigrad.tape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from minigrad._c import ffi, lib, node_class

__all__ = ["keep", "names"]

_tensor_parts = lib.mg_tensor_parts()
keep = _tensor_parts[11]  # the owner of borrowed memory lives until the last array on it has gone
_tensor_parts[16](
    *[ffi.typeof(f"mg_{kind} *") for kind in ("array", "array *", "stored", "stored *", "saved")]
)


def _saved_places(row: Any) -> bytes:
    """For each set of inputs that need gradients, where the three arrays to save lie.

    That is among the inputs, after which comes the result, and then nothing.
    """
    arity = row.arity
    places = [bytes([arity + 1] * 3)]
    for needed in range(1, 1 << arity):
        found = bytearray(places[0])
        for name in row.saves([bool(needed >> i & 1) for i in range(arity)]):
            found[row.place_of(name)] = arity if name == "y" else row.place_of(name)
        places.append(bytes(found))
    return b"".join(places).ljust(24, b"\0")


def names() -> Any:
    """What C has under the names that the modules of the tape have in Python."""
    from minigrad.ops.table import TABLE, Row

    operation, single = _tensor_parts[3:5]
    into_grads, run_pass, rule, one = lib.mg_back_parts()

    def applying(apply_in_python: Any) -> tuple[Any, Any, Any]:
        def operation_of(row: Any) -> Any:
            if row.run is None and row.kernel is None:
                keeps = "x" in row.keeps, "y" in row.keeps
                row.run = single(row, row.forward, row.view, row.wants_shape, *keeps)
            elif row.run is None:
                kernel_of_gradients = bool(row.derivatives)
                pointwise = row.id >= 0 or row.kernel in (lib.mg_where, lib.mg_clamp)
                places = _saved_places(row)
                given = row.number, row.arity, pointwise, kernel_of_gradients, places
                row.run = operation(row, row.kernel, *given)
            return row.run

        def of_all(row: Any, number: int) -> Any:
            return operation(row, lib.mg_reduce, number, 1, False, True, bytes([2] * 24))

        def apply(row: Any, inputs: Any, args: tuple[Any, ...] = ()) -> Any:
            if row.kernel is not None:
                return operation_of(row)(*inputs)
            if row.arity == 1:
                return operation_of(row)(inputs[0], args)
            return apply_in_python(row, inputs, args)

        for function, name in ((apply, "apply"), (operation_of, "operation"), (of_all, "of_all")):
            function.__module__ = "minigrad.tape.apply"
            function.__name__ = function.__qualname__ = name
        return apply, operation_of, of_all

    def kernel_rule(row: Any, partials: tuple[Any, ...]) -> Any:
        return rule(row.vjp_kernel, row.number, row.family == "pointwise", partials)

    def linear_rule(row: Any) -> Any:
        number = {"sum": -1, "mean": TABLE["mul"].id}.get(row.name, -2)
        return rule(row.fused[0], number, False, (None,))

    found: list[Any] = []  # the function vjp.rules, which the first backward loads

    def rules(row: Any) -> tuple[Any, Any]:
        if not found:
            from minigrad.tape import vjp

            found.append(vjp.rules)
        return found[0](row)  # type: ignore[no-any-return]

    Row.vjp = property(lambda row: rules(row)[0])  # type: ignore[attr-defined]
    Row.graph_vjp = property(lambda row: rules(row)[1])  # type: ignore[attr-defined]
    node_class.__module__ = "minigrad.tape.node"
    _tensor_parts[0].__module__ = "minigrad.tape.tensor_base"
    node_class.input_meta = vars(node_class)["adapted"]
    node_class.needs_grad = vars(node_class)["wanted"]
    fields, size, wrap, _, _, parent_of, link, cut, spans, join, shown = _tensor_parts[:11]
    from_lists, to_lists, use, commit = _tensor_parts[12:16]
    return SimpleNamespace(
        Node=node_class,
        new_node=lambda op, saved, args, meta, parents: node_class.record(
            op, saved, args, meta, *parents
        ),
        Fields=fields,
        Size=size,
        wrap=wrap,
        parent_of=parent_of,
        link=link,
        applying=applying,
        basic_index=cut,
        split=spans,
        concat=join,
        numpy_view=shown,
        from_lists=from_lists,
        to_lists=to_lists,
        use=use,
        commit=commit,
        into_grads=into_grads,
        run_pass=run_pass,
        kernel_rule=kernel_rule,
        linear_rule=linear_rule,
        one=one,
    )
