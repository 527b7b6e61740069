import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class TestPackageConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "VirtualRunEnv"
    test_type = "explicit"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        # It takes a lock, so it needs a server.
        hosts = os.environ.get("ZKLOCK_HOSTS")
        if can_run(self) and hosts:
            self.run(f"'{self.cpp.build.bindir}/minimal' {hosts}", env="conanrun")
