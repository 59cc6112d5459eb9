from Cython.Build import cythonize
from setuptools import Extension, setup

import callboard

setup(
    ext_modules=cythonize(
        Extension(
            "stages",
            ["stages.pyx"],
            language="c++",
            include_dirs=[callboard.get_include()],
            extra_compile_args=["-std=c++17", "-O3"],
        ),
        include_path=[callboard.get_include()],
        compiler_directives={"language_level": 3, "freethreading_compatible": True},
    ),
)
