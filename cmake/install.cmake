# Installs headers, libraries, the license, the CMake package and the pkg-config file; for a Python package, the source
# and the examples instead.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Before version 1.0, a new minor version may break compatibility.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()

function(install_dmlops)
  install(DIRECTORY include/dmlops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/dmlops)

  set(targets dmlops)
  if(DMLOPS_BUILD_SHARED)
    list(APPEND targets dmlops_shared)
  endif()
  install(TARGETS ${targets} EXPORT dmlops)

  set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dmlops)
  configure_package_config_file(cmake/dmlopsConfig.cmake.in dmlopsConfig.cmake
    INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(dmlopsConfigVersion.cmake COMPATIBILITY ${compatibility})
  install(FILES ${PROJECT_BINARY_DIR}/dmlopsConfig.cmake ${PROJECT_BINARY_DIR}/dmlopsConfigVersion.cmake
    DESTINATION ${config_dir})
  install(EXPORT dmlops NAMESPACE dmlops:: FILE dmlopsTargets.cmake DESTINATION ${config_dir})

  # Paths in the pkg-config file are relative to it, so that the installation can be moved, unless a packager
  # has set absolute ones.
  set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(root /prefix)
    cmake_path(APPEND root ${CMAKE_INSTALL_LIBDIR} pkgconfig OUTPUT_VARIABLE pc_dir)
    cmake_path(RELATIVE_PATH root BASE_DIRECTORY ${pc_dir} OUTPUT_VARIABLE pc_to_prefix)
    string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
    set(PC_PREFIX "\${pcfiledir}/${pc_to_prefix}")
  endif()
  foreach(name IN ITEMS INCLUDE LIB)
    set(PC_${name}_DIR "\${prefix}")
    cmake_path(APPEND PC_${name}_DIR ${CMAKE_INSTALL_${name}DIR})
  endforeach()
  # Programs link dependencies for the static library only.
  set(cxx_library ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
  list(FILTER cxx_library INCLUDE REGEX "^(std)?c\\+\\+$")
  list(REMOVE_DUPLICATES cxx_library)
  if(NOT MSVC)
    list(APPEND cxx_library m)
  endif()
  list(TRANSFORM cxx_library PREPEND -l)
  string(REPLACE "LINKER:" "-Wl," kept_loaded "${keep_loaded}")
  string(JOIN " " static_libs ${cxx_library} -pthread ${kept_loaded})
  if(DMLOPS_BUILD_SHARED)
    set(PC_PRIVATE_CFLAGS -DDMLOPS_STATIC)
    set(PC_PRIVATE_LIBS ${static_libs})
  else()
    set(PC_CFLAGS -DDMLOPS_STATIC)
    set(PC_LIBS ${static_libs})
  endif()
  configure_file(cmake/dmlops.pc.in dmlops.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/dmlops.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# The interface uses classes of the standard library, so a program needs a library built by its own compiler. A wheel
# therefore contains the source, which is small; cmake/package finds it.
function(install_dmlops_source)
  install(FILES CMakeLists.txt LICENSE DESTINATION dmlops/cpp)
  install(DIRECTORY cmake include src DESTINATION dmlops/cpp PATTERN src/python EXCLUDE)
  write_basic_package_version_file(dmlopsConfigVersion.cmake COMPATIBILITY ${compatibility} ARCH_INDEPENDENT)
  install(FILES ${PROJECT_BINARY_DIR}/dmlopsConfigVersion.cmake DESTINATION dmlops/cpp/cmake/package)
  # The documentation's examples.
  install(DIRECTORY examples DESTINATION dmlops PATTERN __pycache__ EXCLUDE)
endfunction()
