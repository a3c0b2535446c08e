"""The cases by group. The import of a module registers its cases."""
