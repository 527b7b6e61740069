# cargo is the system's: zklock needs Rust 1.85 or later.
vcpkg_download_distfile(archive
    URLS "@URL@"
    FILENAME "zklock-@VERSION@.tar.gz"
    SHA512 @SHA512@
)
vcpkg_extract_source_archive(source ARCHIVE "${archive}")

set(tls "")
if(NOT "tls" IN_LIST FEATURES)
    set(tls --no-tls)
endif()
vcpkg_execute_required_process(
    COMMAND "${source}/zklock-ffi/install.sh" "${CURRENT_PACKAGES_DIR}" ${tls}
    WORKING_DIRECTORY "${source}"
    LOGNAME "install-${TARGET_TRIPLET}"
)
vcpkg_fixup_pkgconfig()
# One of the two libraries, as the triplet says.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    file(GLOB others "${CURRENT_PACKAGES_DIR}/lib/libzklock.so*")
else()
    set(others "${CURRENT_PACKAGES_DIR}/lib/libzklock.a")
endif()
file(REMOVE ${others} "${CURRENT_PACKAGES_DIR}/share/zklock/installed")
# The package for CMake finds the libraries from where it is.
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
# A release alone.
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE-MIT" "${source}/LICENSE-APACHE")
