"""What pyproject.toml cannot say: the cffi modules, which depend on the machine."""

import os
import runpy

from setuptools import setup

BUILD_SCRIPT = "csrc/build.py"

isas = runpy.run_path(BUILD_SCRIPT)["isas"]()
setup(
    cffi_modules=[f"{BUILD_SCRIPT}:{isa}" for isa in isas],
    options={"build_ext": {"parallel": os.cpu_count()}},
)
