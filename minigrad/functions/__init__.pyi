# Written by docs/stubs.py from the modules themselves: change those.
import builtins
from typing import Any
from minigrad.functions.arranging import *
from minigrad.functions.calculus import *
from minigrad.functions.contraction import *
from minigrad.functions.counting import *
from minigrad.functions.diagonals import *
from minigrad.functions.elementwise import *
from minigrad.functions.padding import *
from minigrad.functions.products import *
from minigrad.functions.quantiles import *
from minigrad.functions.reductions import *
from minigrad.functions.scans import *
from minigrad.functions.scattering import *
from minigrad.functions.selection import *
from minigrad.functions.shaping import *
from minigrad.functions.solving import *
from minigrad.functions.sorting import *
from minigrad.functions.statistics import *

LATER: Any
TOPICS: Any
NOT_METHODS: Any
__all__: list[str]
