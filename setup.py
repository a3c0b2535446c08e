"""Build of the two extension modules, whose flags depend on the machine, and the tag of wheels."""

import os
import re
import runpy
import sysconfig
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

BUILD_SCRIPT = "csrc/build.py"
build = runpy.run_path(BUILD_SCRIPT)

Macros = list[tuple[str, str | None]]


class BuildExt(build_ext):
    """Compiles the kernels for each instruction set with its own flags, and all else once."""

    def build_extension(self, ext: Extension) -> None:
        """Leaves out what the compiler cannot make, but for the first instruction set."""
        if ext.name == "minigrad._speed":
            super().build_extension(ext)
            return
        isas = build["isas"]()
        with ThreadPoolExecutor(os.cpu_count()) as pool:

            def compiled(kind: str, sources: list[str], flags: list[str]) -> list[Future[str]]:
                macros = ext.define_macros if kind == "core" else []
                return [pool.submit(self.unit, kind, file, flags, macros) for file in sources]

            core = compiled("core", ext.sources, ext.extra_compile_args)
            kernels = {
                isa: compiled(isa, build["KERNELS"], build["kernel_flags"](isa)) for isa in isas
            }
        objects = [unit.result() for unit in core]
        there = []
        for isa, units in kernels.items():
            try:
                objects += [unit.result() for unit in units]
                there.append(f"MG_EACH_ISA({isa})")
            except CompileError as error:
                if isa == isas[0]:
                    raise
                self.warn(f"no kernels for {isa}: {error}")
        list_of_isas: Macros = [("MG_ISAS", " ".join(there))]
        objects.append(self.unit("core", build["DISPATCH"], ext.extra_compile_args, list_of_isas))
        ext.sources = []
        ext.extra_objects = ext.depends = objects
        super().build_extension(ext)

    def unit(self, kind: str, source: str, flags: list[str], macros: Macros) -> str:
        """The object file of a translation unit, compiled if anything that made it has changed."""
        folder = str(Path(self.build_temp) / kind)
        made: str = self.compiler.object_filenames([source], output_dir=folder)[0]
        asked = Path(made).with_suffix(".flags")  # with what it was compiled last
        wanted = f"{self.compiler.compiler_so} {flags} {macros}"
        if self.force or self.is_stale(Path(made)) or asked.read_text("utf-8") != wanted:
            asked.unlink(missing_ok=True)
            self.compiler.compile(
                [source],
                output_dir=folder,
                macros=macros,
                include_dirs=["csrc"],
                extra_postargs=[*flags, "-MMD"],
            )
            asked.write_text(wanted, "utf-8")
        return made

    @staticmethod
    def is_stale(made: Path) -> bool:
        """Whether an object file is older than a file it was made of; the compiler listed these."""
        listed = made.with_suffix(".d")
        if not (made.exists() and listed.exists() and made.with_suffix(".flags").exists()):
            return True
        text = listed.read_text("utf-8").replace("\\\n", " ").partition(":")[2]
        files = [Path(re.sub(r"\\(.)", r"\1", name)) for name in re.findall(r"(?:\\.|\S)+", text)]
        time = made.stat().st_mtime
        return any(not file.exists() or file.stat().st_mtime > time for file in files)


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
            sorted(map(str, Path("csrc/python").glob("*.c"))),
            depends=["csrc/minigrad.h", "csrc/ops.def", *map(str, Path("csrc/python").glob("*.h"))],
            py_limited_api=not sysconfig.get_config_var("Py_GIL_DISABLED"),
            optional=True,
            **build["speed"](),
        )
    ],
    cmdclass={"build_ext": BuildExt},
    options=options,
)
