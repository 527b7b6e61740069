from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, get

required_conan_version = ">=2.1"


class ZklockConan(ConanFile):
    name = "zklock"
    description = "Distributed locks on Apache ZooKeeper that tell you when you no longer hold them"
    license = ("MIT", "Apache-2.0")
    url = "@REPOSITORY@"
    homepage = "@REPOSITORY@"
    topics = ("zookeeper", "distributed", "lock", "mutex", "fencing")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"tls": [True, False]}
    default_options = {"tls": True}

    def package_id(self):
        # Rust makes the library, and its interface is C. The C++ in the headers belongs to the program.
        del self.info.settings.compiler
        del self.info.settings.build_type

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("zklock needs Linux")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def build(self):
        # cargo is the system's: zklock needs Rust 1.85 or later.
        tls = "" if self.options.tls else "--no-tls"
        self.run(f"zklock-ffi/install.sh '{self.build_folder}/installed' {tls}", cwd=self.source_folder)

    def package(self):
        copy(self, "*", src=f"{self.build_folder}/installed", dst=self.package_folder)
        copy(self, "LICENSE-*", src=self.source_folder, dst=f"{self.package_folder}/licenses")

    def package_info(self):
        # The library has a package for CMake of its own.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("pkg_config_name", "zklock")
        self.cpp_info.builddirs = ["lib/cmake/zklock"]
        self.cpp_info.libs = ["zklock"]
