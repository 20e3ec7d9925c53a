# What is installed, and where: headers, libraries, the CMake package, the pkg-config file; in a Python package, the
# source in their place.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Before version 1.0 the second number of a version is the one that breaks.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()

function(install_dmlops)
  install(DIRECTORY include/dmlops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

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

  # The pkg-config file finds its folders from its own place, so that the whole can be moved; except where a packager
  # has set an absolute folder.
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
  configure_file(cmake/dmlops.pc.in dmlops.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/dmlops.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# A wheel's own compiler and standard library are seldom those of the programs that use it, and the library's interface
# has the standard library's classes. So it carries the source, which is small too; cmake/package finds it.
function(install_dmlops_source)
  install(FILES CMakeLists.txt DESTINATION dmlops/cpp)
  install(DIRECTORY cmake include src DESTINATION dmlops/cpp PATTERN src/python EXCLUDE)
  write_basic_package_version_file(dmlopsConfigVersion.cmake COMPATIBILITY ${compatibility} ARCH_INDEPENDENT)
  install(FILES ${PROJECT_BINARY_DIR}/dmlopsConfigVersion.cmake DESTINATION dmlops/cpp/cmake/package)
endfunction()
