"""What pyproject.toml cannot say: how the C is built, which depends on the machine, and the tag."""

import os
import runpy
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError
from setuptools.modified import newer_group

BUILD_SCRIPT = "csrc/build.py"
build = runpy.run_path(BUILD_SCRIPT)


class BuildExt(build_ext):
    """Compiles the kernels for each instruction set with its own flags, then all else."""

    def build_extension(self, ext: Extension) -> None:
        """Leaves out what the compiler cannot make, but for the first instruction set."""
        if ext.name == "minigrad._speed":
            super().build_extension(ext)
            return
        isas = build["isas"]()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = dict(zip(isas, pool.map(lambda isa: self.kernels(isa, ext), isas), strict=True))
        if made[isas[0]] is None:
            raise CompileError("the compiler's messages above say why")
        ext.extra_objects = [file for file in made.values() if file]
        there = " ".join(f"MG_EACH_ISA({isa})" for isa, file in made.items() if file)
        ext.define_macros = [*ext.define_macros, ("MG_ISAS", there)]
        super().build_extension(ext)

    def kernels(self, isa: str, ext: Extension) -> str | None:
        """The object file of an instruction set's kernels."""
        source, flags = build["kernels"](isa)
        made: str = self.compiler.object_filenames([source], output_dir=self.build_temp)[0]
        try:
            if self.force or newer_group(ext.depends, made):
                self.compiler.compile(
                    [source],
                    output_dir=self.build_temp,
                    include_dirs=["csrc"],
                    extra_postargs=flags,
                )
        except CompileError as error:
            self.warn(f"no kernels for {isa}: {error}")
            return None
        return made


# The module uses the stable ABI, so that one wheel serves the oldest Python and all later ones.
# There is none yet for free-threaded builds.
options = {}
if not sysconfig.get_config_var("Py_GIL_DISABLED"):
    options["bdist_wheel"] = {"py_limited_api": "cp310"}

setup(
    cffi_modules=[f"{BUILD_SCRIPT}:native"],
    ext_modules=[
        Extension(
            "minigrad._speed",
            sorted(glob("csrc/python/*.c")),
            depends=["csrc/minigrad.h", "csrc/ops.def", "csrc/python/speed.h"],
            py_limited_api=not sysconfig.get_config_var("Py_GIL_DISABLED"),
            optional=True,
            **build["speed"](),
        )
    ],
    cmdclass={"build_ext": BuildExt},
    options=options,
)
