# find_package(dmlops) for the source in the Python package: adds the library to the calling project as a subdirectory,
# built by the project's compiler. The targets are those of an installed dmlops: dmlops::dmlops, dmlops::static, and
# with COMPONENTS shared or BUILD_SHARED_LIBS dmlops::shared.
if(NOT TARGET dmlops::dmlops)
  if("shared" IN_LIST dmlops_FIND_COMPONENTS)
    set(BUILD_SHARED_LIBS ON)
  elseif("static" IN_LIST dmlops_FIND_COMPONENTS)
    set(BUILD_SHARED_LIBS OFF)
  endif()
  add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/../.. ${CMAKE_BINARY_DIR}/dmlops EXCLUDE_FROM_ALL)
endif()
foreach(component IN LISTS dmlops_FIND_COMPONENTS)
  if(TARGET dmlops::${component})
    set(dmlops_${component}_FOUND TRUE)
  elseif(dmlops_FIND_REQUIRED_${component})
    set(dmlops_FOUND FALSE)
    set(dmlops_NOT_FOUND_MESSAGE "this dmlops has no component ${component}; there are static and shared")
    if(component STREQUAL "shared")
      string(APPEND dmlops_NOT_FOUND_MESSAGE
        "; set DMLOPS_BUILD_SHARED=ON, or ask for the component in the first find_package(dmlops)")
    endif()
  endif()
endforeach()
