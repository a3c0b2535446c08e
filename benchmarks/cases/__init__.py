"""The cases by group; importing a module registers its cases."""
