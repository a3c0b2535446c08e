# Written by docs/stubs.py from the modules themselves: change those.
import builtins
from typing import Any
from minigrad.arranging import *
from minigrad.calculus import *
from minigrad.contraction import *
from minigrad.counting import *
from minigrad.diagonals import *
from minigrad.elementwise import *
from minigrad.padding import *
from minigrad.products import *
from minigrad.quantiles import *
from minigrad.reductions import *
from minigrad.scans import *
from minigrad.scattering import *
from minigrad.selection import *
from minigrad.shaping import *
from minigrad.solving import *
from minigrad.sorting import *
from minigrad.statistics import *

LATER: Any
TOPICS: Any
NOT_METHODS: Any
__all__: list[str]
