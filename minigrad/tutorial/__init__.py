"""Tutorial classes: micrograd's ``Value``, ``Variable``, and drawings of a graph."""
