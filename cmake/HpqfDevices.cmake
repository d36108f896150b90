# The device database: data/devices beside the library in the build tree (a link: an edited file is live) and in the wheel,
# share/hpqf/devices in an installed tree. The library finds it from its own place, so the path between the two is compiled in.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/data)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/data/devices ${PROJECT_BINARY_DIR}/data/devices SYMBOLIC)
file(RELATIVE_PATH hpqf_devices_from_library ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_DATADIR}/hpqf/devices)
set_source_files_properties(hpqf/device/shipped.cc PROPERTIES COMPILE_DEFINITIONS
                            HPQF_DEVICES_FROM_LIBRARY="${hpqf_devices_from_library}")
