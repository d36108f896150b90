# Finds the libtorch inside the Python wheel (or -DCMAKE_PREFIX_PATH=<libtorch zip>).
find_package(Python3 COMPONENTS Interpreter Development.Module REQUIRED)
if(NOT Torch_DIR)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import torch; print(torch.utils.cmake_prefix_path)"
                  OUTPUT_VARIABLE hpqf_torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND CMAKE_PREFIX_PATH ${hpqf_torch_prefix})
endif()
find_package(Torch REQUIRED)
if(Torch_VERSION VERSION_LESS 2.11 OR Torch_VERSION VERSION_GREATER_EQUAL 2.16)
  message(WARNING "hpqf: torch ${Torch_VERSION} found; 2.11 to 2.15 are supported")
endif()
# at::parallel_for is a template that is parallel only in a file compiled with OpenMP. The wheel brings the same libgomp.so.1,
# and a process loads one library of a name: there is one pool.
find_package(OpenMP REQUIRED COMPONENTS CXX)
get_filename_component(HPQF_TORCH_LIB "${TORCH_LIBRARY}" DIRECTORY)

# torch's include folder carries its own, newer fmt, which wins over the system's headers and has no library to link:
# whatever compiles against torch uses it header-only. The versions live in different inline namespaces and do not meet.
set_property(TARGET torch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)

# torch's own target puts build-host folders into RUNPATH; ours is where the wheel's libraries lie, and $ORIGIN.
function(hpqf_torch_rpath target)
  set_target_properties(${target} PROPERTIES
    BUILD_RPATH "${HPQF_TORCH_LIB};${PROJECT_BINARY_DIR}"
    INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/../torch/lib;${HPQF_TORCH_LIB}"
    INSTALL_RPATH_USE_LINK_PATH OFF)
endfunction()
