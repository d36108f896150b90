# The installed tree: libraries, public headers, the command line (its own install rule), and find_package(hpqf).
# A torch-free build installs the torch-free rooms only.
include(CMakePackageConfigHelpers)
set(hpqf_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hpqf)

# One export set per library, so that a project without torch never sees a target that needs it.
function(hpqf_install_library target)
  install(TARGETS ${target} EXPORT ${target}_targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(EXPORT ${target}_targets NAMESPACE hpqf:: FILE ${target}Targets.cmake
          DESTINATION ${hpqf_package_dir} COMPONENT development)
endfunction()

hpqf_install_library(hpqf_core)
if(HPQF_WITH_TORCH)
  hpqf_install_library(hpqf)
endif()

# The headers of reference twins, of kernels for one instruction set and of the JSON reader are internal to their rooms.
get_property(hpqf_rooms GLOBAL PROPERTY HPQF_ROOMS)
foreach(room IN LISTS hpqf_rooms)
  install(DIRECTORY hpqf/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hpqf COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN "ref" EXCLUDE PATTERN "x86" EXCLUDE
          PATTERN "arm" EXCLUDE PATTERN "json.h" EXCLUDE PATTERN "*_json.h" EXCLUDE PATTERN "json_*.h" EXCLUDE PATTERN "*_test.h" EXCLUDE)
endforeach()

configure_package_config_file(cmake/hpqfConfig.cmake.in ${PROJECT_BINARY_DIR}/hpqfConfig.cmake
                              INSTALL_DESTINATION ${hpqf_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hpqfConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hpqfConfig.cmake ${PROJECT_BINARY_DIR}/hpqfConfigVersion.cmake
        DESTINATION ${hpqf_package_dir} COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(DIRECTORY data/devices DESTINATION ${CMAKE_INSTALL_DATADIR}/hpqf COMPONENT library FILES_MATCHING PATTERN "*.json")
