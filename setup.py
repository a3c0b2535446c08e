"""What pyproject.toml cannot say: the cffi modules, which depend on the machine, and the tag."""

import os
import runpy
import sysconfig

from setuptools import setup

BUILD_SCRIPT = "csrc/build.py"

# The modules use the stable ABI, so that one wheel serves the oldest Python and all later ones.
# There is none yet for free-threaded builds.
options = {"build_ext": {"parallel": os.cpu_count()}}
if not sysconfig.get_config_var("Py_GIL_DISABLED"):
    options["bdist_wheel"] = {"py_limited_api": "cp310"}

isas = runpy.run_path(BUILD_SCRIPT)["isas"]()
setup(
    cffi_modules=[f"{BUILD_SCRIPT}:{isa}" for isa in isas],
    options=options,
)
