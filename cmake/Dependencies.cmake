# Every third-party library of the project, all from Debian 12 packages
# (scripts/setup.sh installs them).
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)  # which gRPC uses for TLS
find_package(absl CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(UCX REQUIRED IMPORTED_TARGET ucx)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(NUMA REQUIRED IMPORTED_TARGET numa)
# Its flags (_XOPEN_SOURCE) are not for the sources of a library.
pkg_check_modules(NCURSES REQUIRED ncurses)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
find_package(hwy QUIET CONFIG)
if(NOT TARGET hwy::hwy)
  pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
  add_library(hwy::hwy ALIAS PkgConfig::HWY)
endif()
find_package(dnnl CONFIG REQUIRED)
find_program(FARKV_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# CUDA is found automatically and never required. The backend itself is not
# there yet: kernels/cuda_absent.cc answers for it in every build.
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA toolkit ${CUDAToolkit_VERSION}: found, not used yet")
else()
  message(STATUS "CUDA toolkit: not found, not needed")
endif()
